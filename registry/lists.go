package registry

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/distribution/distribution/v3/registry/api/errcode"
	kubeauthorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// serveCatalog lists all image streams as repositories. The caller needs permission to list image
// streams.
func (s *server) serveCatalog(w http.ResponseWriter, r *http.Request) {
	if !s.allowed(w, r, kubeauthorizationv1.ResourceAttributes{Verb: "list", Resource: "imagestreams"}) {
		return
	}
	streams, err := s.images.ImageStreams("").List(r.Context(), metav1.ListOptions{})
	if err != nil {
		serveError(w, errcode.ErrorCodeUnavailable.WithMessage(err.Error()))
		return
	}
	var names []string
	for _, stream := range streams.Items {
		names = append(names, stream.Namespace+"/"+stream.Name)
	}
	servePage(w, r, names, func(page []string) any { return map[string]any{"repositories": page} })
}

// serveTags lists a stream's tags that have an image.
func (s *server) serveTags(w http.ResponseWriter, r *http.Request, t target) {
	stream, err := s.images.ImageStreams(t.namespace).Get(r.Context(), t.stream, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		serveError(w, errcode.ErrorCodeNameUnknown.WithDetail(map[string]string{"name": t.repository()}))
		return
	}
	if err != nil {
		serveError(w, errcode.ErrorCodeUnavailable.WithMessage(err.Error()))
		return
	}
	var names []string
	for _, tag := range stream.Status.Tags {
		if len(tag.Items) > 0 {
			names = append(names, tag.Tag)
		}
	}
	servePage(w, r, names, func(page []string) any { return map[string]any{"name": t.repository(), "tags": page} })
}

// servePage serves the page of a list that the query parameters `n` and `last` select. It sorts
// names.
func servePage(w http.ResponseWriter, r *http.Request, names []string, body func([]string) any) {
	slices.Sort(names)
	query := r.URL.Query()
	if last := query.Get("last"); last != "" {
		from, ok := slices.BinarySearch(names, last)
		if ok {
			from++
		}
		names = names[from:]
	}
	if text := query.Get("n"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			serveError(w, errcode.ErrorCodePaginationNumberInvalid.WithDetail(map[string]string{"n": text}))
			return
		}
		if n < len(names) {
			names = names[:n]
			if n > 0 {
				next := url.URL{Path: r.URL.Path, RawQuery: url.Values{"n": {text}, "last": {names[n-1]}}.Encode()}
				w.Header().Set("Link", "<"+next.String()+`>; rel="next"`)
			}
		}
	}
	if names == nil {
		names = []string{}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body(names))
}
