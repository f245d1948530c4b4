# One static program in an image with nothing else. It runs the worker unless another command is given.
FROM golang:1.26.8-bookworm AS build
WORKDIR /src
ENV CGO_ENABLED=0 GOWORK=off GOFLAGS=-trimpath
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN go build -ldflags='-s -w' -o /out/jig ./cmd/jig \
 && mkdir -p /out/work /out/keys/server /out/keys/root

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/jig /usr/local/bin/
# The working directory of the file tools; mount a volume here that user 65532 may write to.
COPY --from=build --chown=65532:65532 /out/work /work
# Where docker-compose.yml mounts the keys, which user 65532 writes.
COPY --from=build --chown=65532:65532 /out/keys /keys
ENV PATH=/usr/local/bin JIG_WORKDIR=/work
WORKDIR /work
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/jig"]
CMD ["worker"]
