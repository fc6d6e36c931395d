# The command in a small image: `docker build --tag flowgauge .`, then
# `docker run --rm --volume "$PWD:/captures:ro" --workdir /captures flowgauge summary day.pcapng`.
FROM docker.io/library/rust:1-alpine AS build
RUN apk add --no-cache musl-dev
WORKDIR /source
COPY . .
RUN cargo build --release --locked --package flowgauge-cli --features arrow,view

FROM scratch
COPY --from=build /source/target/release/flowgauge /flowgauge
COPY LICENSE-APACHE LICENSE-MIT /
# An identifier without a name or privileges.
USER 65534:65534
ENTRYPOINT ["/flowgauge"]
