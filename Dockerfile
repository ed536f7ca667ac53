# cgs on Debian, without a GPU.  Not built by continuous integration; the same steps are what
# tests/cli/cli_deb.sh does in chroots of Debian 12 and 13.
#   docker build -t cgs . && docker run --rm -v "$PWD:/work" cgs envs
FROM debian:trixie-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends make git
COPY . /cgs
WORKDIR /cgs
RUN scripts/setup.sh deb && make deb

FROM debian:trixie-slim
COPY --from=build /cgs/build/deb/*.deb /tmp/deb/
RUN apt-get update && apt-get install -y --no-install-recommends /tmp/deb/*.deb && rm -rf /var/lib/apt/lists /tmp/deb
WORKDIR /work
ENTRYPOINT ["cgs"]
