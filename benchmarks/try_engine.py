import sys, time, torch, json
from pathlib import Path
from ckgconv.data import load
from ckgconv.engine.run import make_learner
from ckgconv.engine.setup import make_fabric, seed_epoch
from ckgconv.engine.loop import train_epoch, evaluate
from ckgconv.nn import CKGCN
from ckgconv.recipes import recipe
import os
from ckgconv.ops.kernel_mlp import triton as K
if os.path.exists("/tmp/best.json"):
    best = json.load(open("/tmp/best.json"))
    rows, warps, busy, tw, st = best["f"][1]
    K.TILE_ROWS = rows; K.FORWARD_BUSY = busy
    K.FORWARD = {"num_warps": warps, "num_stages": st, "TILEWISE": bool(tw)}
    K.BACKWARD_ROWS, warps, busy, tw, st = best["b"][1]
    K.BACKWARD_BUSY = busy
    K.BACKWARD = {"num_warps": warps, "num_stages": st}
name, precision = sys.argv[1], sys.argv[2]
r = recipe(name)
fabric = make_fabric("cuda", precision)
torch.use_deterministic_algorithms(False)
torch.manual_seed(0)
data = load(r.data, Path("carried") if Path("carried").exists() else None)
learner = make_learner(fabric, CKGCN.from_recipe(r), data, r)
print("captures", learner.captures)
for e in range(4):
    seed_epoch(0, e)
    t = time.time(); entry = train_epoch(learner, e, lambda g, l: None); torch.cuda.synchronize(); t1 = time.time()
    v = evaluate(learner, "val"); t2 = time.time()
    print(name, precision, e, "epoch %.3f s, val %.3f s" % (t1 - t, t2 - t1), entry["train_loss"], v, "GB", torch.cuda.max_memory_allocated() / 1e9, flush=True)
if len(sys.argv) > 3:
    from torch.profiler import profile, ProfilerActivity
    with profile(activities=[ProfilerActivity.CUDA]) as prof:
        train_epoch(learner, 4, lambda g, l: None); torch.cuda.synchronize()
    rows = sorted(prof.key_averages(), key=lambda k: -k.device_time_total)
    print("total kernels", sum(k.count for k in rows), "ms", sum(k.device_time_total for k in rows) / 1e3)
    for k in rows[:45]:
        print("%9.2f us/step %6.1f calls/step %7.2f us  %s" % (k.device_time_total / 313, k.count / 313, k.device_time_total / max(k.count, 1), k.key[:90]))
