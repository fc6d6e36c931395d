#!/bin/bash -eu
# Builds all targets, and adds an archive of seeds and regressions and the dictionary for each.
cd "$SRC/flowgauge"
cargo fuzz build -O
cargo run --release --manifest-path fuzz/Cargo.toml --example seeds
for target in $(cargo fuzz list); do
    cp "fuzz/target/x86_64-unknown-linux-gnu/release/$target" "$OUT/"
    mkdir -p "fuzz/corpus/$target" "fuzz/regressions/$target"
    zip -qr -j "$OUT/${target}_seed_corpus.zip" "fuzz/corpus/$target" "fuzz/regressions/$target"
    if [ -f "fuzz/dictionaries/$target.dict" ]; then
        cp -L "fuzz/dictionaries/$target.dict" "$OUT/"
    fi
done
