package registry

import (
	"net/http"
	"strings"

	"github.com/opencontainers/go-digest"
)

// naming is a response writer. It replaces distribution's sha256 digest with the digest that the
// client uses.
type naming struct {
	http.ResponseWriter
	name digest.Digest
}

// named returns a writer for responses about the content with the digest id, which can be invalid.
func named(w http.ResponseWriter, id string) http.ResponseWriter {
	name, err := digest.Parse(id)
	if err != nil || name.Algorithm() == digest.Canonical {
		return w
	}
	return &naming{w, name}
}

// WriteHeader replaces the digest in the header of a successful response.
func (n *naming) WriteHeader(status int) {
	if status < http.StatusMultipleChoices {
		rename(n.Header(), n.name)
	}
	n.ResponseWriter.WriteHeader(status)
}

// Unwrap supports http.ResponseController.
func (n *naming) Unwrap() http.ResponseWriter { return n.ResponseWriter }

// rename replaces the digest in a response's headers, if they contain a digest.
func rename(header http.Header, name digest.Digest) {
	current := header.Get("Docker-Content-Digest")
	if current == "" {
		return
	}
	header.Set("Docker-Content-Digest", name.String())
	if at := header.Get("Location"); at != "" {
		header.Set("Location", strings.Replace(at, current, name.String(), 1))
	}
}
