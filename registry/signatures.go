package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/distribution/distribution/v3/registry/api/errcode"
	imagev1 "github.com/openshift/api/image/v1"
	imageclient "github.com/openshift/client-go/image/clientset/versioned/typed/image/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// signaturesPath is the prefix of /extensions/v2/<project>/<stream>/signatures/<digest>, the paths
// for reading and adding image signatures.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, 12.6 (reading and writing image
// signatures).
const signaturesPath = "/extensions/v2/"

// maxSignature is the maximum size of a request that adds a signature, in bytes.
const maxSignature = 1 << 20

// signature is a signature in the JSON format that clients send and receive.
type signature struct {
	Version int    `json:"schemaVersion"`
	Name    string `json:"name"` // in the form <digest>@<32 characters>
	Type    string `json:"type"`
	Content []byte `json:"content"`
}

// signatureVersion is the only supported version.
const signatureVersion = 2

func (s *server) serveSignatures(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, signaturesPath), "/")
	if len(parts) != 4 || parts[2] != "signatures" {
		serveError(w, errcode.ErrorCodeUnsupported.WithMessage("signatures are served at "+signaturesPath+"<project>/<stream>/signatures/<digest>"))
		return
	}
	t := target{namespace: parts[0], stream: parts[1], reference: parts[3]}
	if !s.allowed(w, r, layers("get", t.namespace, t.stream)) {
		return
	}
	switch r.Method {
	case http.MethodGet:
		s.readSignatures(w, r, t)
	case http.MethodPut:
		s.addSignature(w, r, t)
	default:
		w.Header().Set("Allow", "GET, PUT")
		http.Error(w, "use GET or PUT", http.StatusMethodNotAllowed)
	}
}

func (s *server) readSignatures(w http.ResponseWriter, r *http.Request, t target) {
	image, err := s.images.ImageStreamImages(t.namespace).Get(r.Context(), t.stream+"@"+t.reference, metav1.GetOptions{})
	if err != nil {
		serveError(w, signatureProblem(err))
		return
	}
	list := []signature{}
	for _, stored := range image.Image.Signatures {
		list = append(list, signature{signatureVersion, stored.Name, stored.Type, stored.Content})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"signatures": list})
}

// addSignature stores a signature with the user's permissions. The user must be an image signer.
func (s *server) addSignature(w http.ResponseWriter, r *http.Request, t target) {
	signature, err := readSignature(http.MaxBytesReader(w, r.Body, maxSignature), t.reference)
	if err != nil {
		serveError(w, errcode.ErrorCodeManifestInvalid.WithMessage(err.Error()))
		return
	}
	user, err := imageclient.NewForConfig(s.as(callerOf(r)))
	if err == nil {
		object := &imagev1.ImageSignature{ObjectMeta: metav1.ObjectMeta{Name: signature.Name}, Type: signature.Type, Content: signature.Content}
		_, err = user.ImageSignatures().Create(r.Context(), object, metav1.CreateOptions{})
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		serveError(w, signatureProblem(err))
		return
	}
	w.WriteHeader(http.StatusCreated)
}

// readSignature reads an image's signature. The signature's name must begin with the image's
// digest.
func readSignature(body io.Reader, image string) (signature, error) {
	var resp struct {
		signature
		OldVersion int `json:"version"`
	}
	if err := json.NewDecoder(body).Decode(&resp); err != nil {
		return signature{}, fmt.Errorf("read signature: %w", err)
	}
	if resp.Version != signatureVersion && resp.OldVersion != signatureVersion {
		return signature{}, errors.New("schemaVersion of a signature must be 2")
	}
	if digest, _, _ := strings.Cut(resp.Name, "@"); digest != image {
		return signature{}, errors.New("the name of a signature must be " + image + "@<32 characters>")
	}
	return resp.signature, nil
}

func signatureProblem(err error) errcode.Error {
	switch {
	case apierrors.IsNotFound(err):
		return errcode.ErrorCodeManifestUnknown.WithMessage(err.Error())
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return errcode.ErrorCodeDenied.WithMessage(err.Error())
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return errcode.ErrorCodeManifestInvalid.WithMessage(err.Error())
	}
	return errcode.ErrorCodeUnavailable.WithMessage(err.Error())
}
