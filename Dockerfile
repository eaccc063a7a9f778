# The live service, with its data on a volume: docker run -p 127.0.0.1:8000:8000 -e SUREPICK_TOKEN=... \
#   -e SUREPICK_PUBLIC_URL=https://... -v surepick:/data surepick
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE CHANGELOG.md requirements.lock ./
COPY src src
# The tested versions. All of them are wheels, so nothing is compiled.
RUN python -m venv /app && pip install --no-cache-dir "$(grep -o '^uv==[^ ]*' requirements.lock)" \
    && uv pip install --no-cache --compile-bytecode --python /app/bin/python --constraint requirements.lock '.[service]'

FROM python:3.12-slim
RUN useradd --create-home --home-dir /data surepick
COPY --from=build /app /app
USER surepick
WORKDIR /data
ENV OPENBLAS_NUM_THREADS=1 SUREPICK_DATABASE=sqlite:////data/surepick.db
EXPOSE 8000
HEALTHCHECK CMD ["/app/bin/python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/health')"]
# The service refuses to start without SUREPICK_TOKEN, and without SUREPICK_PUBLIC_URL=https://... (the proxy in front)
# or SUREPICK_PLAIN_HTTP=1, because other machines reach this address.
ENTRYPOINT ["/app/bin/surepick", "serve", "--host", "0.0.0.0"]
