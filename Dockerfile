# layerboard with all it needs; the container needs a network only for weights and data of the Hub.
#   docker build -t layerboard .                                           with CUDA: docker run --gpus all
#   docker build -t layerboard:cpu --build-arg TORCH_INDEX=INDEX .         smaller; INDEX: that of PyTorch's CPU builds
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/work" layerboard run --images photos
FROM python:3.12-slim

ARG TORCH_INDEX=""

COPY . /src
RUN if [ -n "$TORCH_INDEX" ]; then pip install --no-cache-dir torch --index-url "$TORCH_INDEX" -c /src/constraints.txt; fi \
    && pip install --no-cache-dir /src -c /src/constraints.txt \
    && rm -rf /src

RUN useradd --create-home layerboard && mkdir /work && chown layerboard /work
USER layerboard
ENV XDG_CACHE_HOME=/work/.cache HF_HOME=/work/.cache/huggingface
WORKDIR /work
ENTRYPOINT ["layerboard"]
CMD ["--help"]
