# The live service on a volume: docker run -p 8000:8000 -e SUREPICK_TOKEN=... -v surepick:/data surepick
FROM python:3.12-slim AS build
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY pyproject.toml README.md LICENSE CHANGELOG.md ./
COPY src src
RUN python -m venv /app && /app/bin/pip install --no-cache-dir '.[service]'

FROM python:3.12-slim
RUN useradd --create-home --home-dir /data surepick
COPY --from=build /app /app
USER surepick
WORKDIR /data
ENV OPENBLAS_NUM_THREADS=1 SUREPICK_DATABASE=sqlite:////data/surepick.db
EXPOSE 8000
HEALTHCHECK CMD ["/app/bin/python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/health')"]
# Refuses to start without SUREPICK_TOKEN: the address is public.
ENTRYPOINT ["/app/bin/surepick", "serve", "--host", "0.0.0.0"]
