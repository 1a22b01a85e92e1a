"""All blocks of message passing in a few launches each; `nn.message_passing` is the specification."""
