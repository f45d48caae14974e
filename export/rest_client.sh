#!/bin/sh
# REST client of a served model, with curl alone. Prints the server's JSON.
#
#   export/rest_client.sh http://localhost:8501 images a.jpg b.jpg
#   export/rest_client.sh http://localhost:8501 captions "a small red bird" "a gull"
#
# MODEL names the model (halo). A signature may be given in place of images and captions:
# index_images, index_captions, encode_images, encode_captions.
set -eu

if [ $# -lt 3 ]; then
  sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
server=$1
signature=$2
shift 2
case $signature in images | captions) signature=encode_$signature ;; esac
argument=${signature#*_}

if [ "$argument" = images ]; then
  for item in "$@"; do
    if [ ! -f "$item" ] || [ ! -r "$item" ]; then
      printf 'error: %s: no such file, or it cannot be read\n' "$item" >&2
      exit 2
    fi
  done
fi

body=$(mktemp)
trap 'rm -f "$body"' EXIT
{
  printf '{"signature_name": "%s", "inputs": {"%s": [' "$signature" "$argument"
  separator=
  for item in "$@"; do
    printf '%s' "$separator"
    separator=', '
    if [ "$argument" = images ]; then
      printf '{"b64": "%s"}' "$(base64 <"$item" | tr -d '\n')"
    else
      printf '"%s"' "$(printf '%s' "$item" | tr '\n\t\r' '   ' | sed 's/[\\"]/\\&/g')"
    fi
  done
  printf ']}}'
} >"$body"
curl --silent --show-error --fail-with-body --max-time 60 \
  --header 'Content-Type: application/json' --data-binary "@$body" \
  "$server/v1/models/${MODEL:-halo}:predict"
