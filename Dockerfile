# docker run --rm -v "$PWD:/code" trainvet check .
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o /trainvet ./cmd/trainvet

FROM scratch
COPY --from=build /trainvet /trainvet
# trainvet review speaks TLS
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
WORKDIR /code
USER 65534:65534
ENTRYPOINT ["/trainvet"]
CMD ["check", "."]
