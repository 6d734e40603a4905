package registry

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/distribution/distribution/v3/registry/api/errcode"
	v2 "github.com/distribution/distribution/v3/registry/api/v2"
	"github.com/distribution/distribution/v3/registry/storage"
	"github.com/opencontainers/go-digest"
	imageclient "github.com/openshift/client-go/image/clientset/versioned/typed/image/v1"
	kubeauthorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/apigroup/image/record"
)

// adminBlobsPath is the prefix of the paths that `oc adm prune images` uses to remove blobs.
const adminBlobsPath = "/admin/blobs/"

// removeBlob removes a blob from the storage. The pruning client has checked that nothing refers to
// the blob.
func (s *server) removeBlob(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodDelete {
		w.Header().Set("Allow", http.MethodDelete)
		http.Error(w, "use DELETE", http.StatusMethodNotAllowed)
		return
	}
	if !s.allowed(w, r, pruning()) {
		return
	}
	id, err := digest.Parse(strings.TrimPrefix(r.URL.Path, adminBlobsPath))
	if err != nil {
		serveError(w, errcode.ErrorCodeDigestInvalid.WithDetail(err.Error()))
		return
	}
	store, err := s.store.get()
	if err == nil && store.readOnly {
		err = errcode.ErrorCodeUnsupported.WithMessage("the registry is read-only")
	}
	if err == nil {
		s.pushes.Lock()
		defer s.pushes.Unlock()
		var promised bool
		promised, err = s.promises.unless("", id, func() error { return storage.NewVacuum(r.Context(), store.driver).RemoveBlob(id.String()) })
		if promised {
			err = errcode.ErrorCodeUnavailable.WithMessage("a push is using the blob; try again when the push has ended")
		}
	}
	if err != nil {
		serveError(w, errcode.ErrorCodeUnknown.WithMessage("remove blob: "+err.Error()))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// isTag reports whether a request is for the manifest of a tag.
func (t target) isTag() bool {
	return t.route == v2.RouteNameManifest && !strings.Contains(t.reference, ":")
}

// removeTag removes a tag from its image stream with the caller's permissions. The image remains
// until it is pruned.
func (s *server) removeTag(w http.ResponseWriter, r *http.Request, t target) {
	tag := t.stream + ":" + t.reference
	if !s.allowed(w, r, kubeauthorizationv1.ResourceAttributes{Verb: "delete", Namespace: t.namespace, Resource: "imagestreamtags", Name: tag}) {
		return
	}
	user, err := imageclient.NewForConfig(s.as(callerOf(r)))
	if err == nil {
		err = user.ImageStreamTags(t.namespace).Delete(r.Context(), tag, metav1.DeleteOptions{})
	}
	switch {
	case err == nil:
		w.WriteHeader(http.StatusAccepted)
	case apierrors.IsNotFound(err):
		serveError(w, errcode.ErrorCodeManifestUnknown.WithDetail(map[string]string{"tag": t.reference}))
	default:
		serveError(w, pushRefusal(err))
	}
}

// maxGarbageRequest is the maximum size of a prune request, in bytes. It is enough for several
// hundred thousand layers.
const maxGarbageRequest = 64 << 20

// removeGarbage removes unreferenced content. The caller needs permission to delete images and to
// list images and image streams.
func (s *server) removeGarbage(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "use POST", http.StatusMethodNotAllowed)
		return
	}
	for _, right := range []kubeauthorizationv1.ResourceAttributes{pruning(), {Verb: "list", Resource: "images"}, {Verb: "list", Resource: "imagestreams"}} {
		if !s.allowed(w, r, right) {
			return
		}
	}
	var request record.GarbageRequest
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxGarbageRequest)).Decode(&request); err != nil {
		http.Error(w, "read request: "+err.Error(), http.StatusBadRequest)
		return
	}
	if !request.DryRun && readOnly(s.Storage) {
		serveError(w, errcode.ErrorCodeUnsupported.WithMessage("the registry is read-only"))
		return
	}
	garbage, err := s.collect(r.Context(), callerOf(r), request)
	if err != nil {
		serveError(w, errcode.ErrorCodeUnavailable.WithMessage("collect garbage: "+err.Error()))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(garbage)
}

// collect removes garbage. No manifest is stored while collect runs, except during a dry run. It
// lists images during the search, so the list includes images that were pushed again.
func (s *server) collect(ctx context.Context, c caller,
	request record.GarbageRequest) (record.Garbage, error) {
	store, err := s.store.get()
	if err != nil {
		return record.Garbage{}, err
	}
	client, err := imageclient.NewForConfig(s.as(c))
	if err != nil {
		return record.Garbage{}, err
	}
	if len(request.Images) == 0 && !request.Everything {
		return record.Garbage{}, nil // an empty request only checks whether the client can prune
	}
	if !request.DryRun {
		s.pushes.Lock()
		defer s.pushes.Unlock()
	}
	images, err := client.Images().List(ctx, metav1.ListOptions{})
	if err != nil {
		return record.Garbage{}, err
	}
	streams, err := client.ImageStreams("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return record.Garbage{}, err
	}
	search := collection{store: store, request: request, images: map[string][]string{}, streams: map[string][]string{}, now: time.Now(), promises: &s.promises}
	for i := range images.Items {
		search.images[images.Items[i].Name] = record.Blobs(&images.Items[i])
	}
	for _, stream := range streams.Items {
		name := stream.Namespace + "/" + stream.Name
		for _, tag := range stream.Status.Tags {
			for _, event := range tag.Items {
				search.streams[name] = append(search.streams[name], event.Image)
			}
		}
	}
	return search.run(ctx)
}
