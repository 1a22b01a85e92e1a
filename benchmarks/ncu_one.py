import sys, torch
sys.path.insert(0, 'benchmarks')
import tune, passes
tune.setup((64, 4, 2, 1))
torch.set_float32_matmul_precision("high")
with torch.autocast("cuda", torch.bfloat16):
    f, b = tune.pairs("zinc")
    b(); torch.cuda.synchronize()
