// Drawing molecules, by OpenChemLib: the editor, and small pictures of SMILES.

import { CanvasEditor, Molecule } from "/openchemlib.js";

// Of a picture, in pixels; structures larger than it are drawn smaller.
export const WIDTH = 168;
export const HEIGHT = 112;

let editor = null;

export function openEditor(place, changed) {
  editor = new CanvasEditor(place);
  editor.setOnChangeListener(({ type }) => {
    if (type === "molecule") changed();
  });
}

export function closeEditor() {
  if (editor) editor.destroy();
  editor = null;
}

// The SMILES of what is drawn; empty for nothing.
export function drawnSmiles() {
  const molecule = editor && editor.getMolecule();
  return molecule && molecule.getAllAtoms() ? molecule.toIsomericSmiles() : "";
}

// Show a molecule in the editor; false where OpenChemLib cannot read it.
export function showInEditor(smiles) {
  try {
    editor.setMolecule(Molecule.fromSmiles(smiles));
    return true;
  } catch {
    return false;
  }
}

// The address of a picture of a molecule; null where OpenChemLib cannot draw it.
export function picture(smiles) {
  try {
    const drawing = Molecule.fromSmiles(smiles).toSVG(WIDTH, HEIGHT, null, { suppressChiralText: true, noStereoProblem: true });
    return `data:image/svg+xml;charset=utf-8,${encodeURIComponent(drawing)}`;
  } catch {
    return null;
  }
}
