"""Messages along edges in one launch forward and one or two backward; `nn.message_layers` is the specification."""
