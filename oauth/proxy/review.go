package proxy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Review checks whether the user who logs in has a permission. It is a SubjectAccessReview in
// authorization.openshift.io/v1. It has no user and groups fields, because the proxy sends the
// review with the user's own token, which can check only that user's permissions.
type Review struct {
	Kind             string `json:"kind"`
	APIVersion       string `json:"apiVersion"`
	Namespace        string `json:"namespace"`
	Verb             string `json:"verb"`
	Group            string `json:"resourceAPIGroup"`
	Version          string `json:"resourceAPIVersion"`
	Resource         string `json:"resource"`
	ResourceName     string `json:"resourceName"`
	Path             string `json:"path"`
	IsNonResourceURL bool   `json:"isNonResourceURL"`
	// Scopes limits the permissions that the review considers. Without scopes, it considers all of
	// the user's permissions, including permissions that the token's scopes exclude.
	Scopes []string `json:"scopes"`
}

// UnmarshalJSON also accepts the field names of Kubernetes resource attributes.
func (r *Review) UnmarshalJSON(text []byte) error {
	type plain Review
	var written struct {
		*plain
		KubernetesGroup   string `json:"group"`
		KubernetesVersion string `json:"version"`
		KubernetesName    string `json:"name"`
	}
	written.plain = (*plain)(r)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&written); err != nil {
		return fmt.Errorf("%w; a review has namespace, verb, resource, resourceAPIGroup, resourceAPIVersion, resourceName, path, "+
			"isNonResourceURL and scopes, and its user is the user who logs in", err)
	}
	r.Group = cmp.Or(r.Group, written.KubernetesGroup)
	r.Version = cmp.Or(r.Version, written.KubernetesVersion)
	r.ResourceName = cmp.Or(r.ResourceName, written.KubernetesName)
	if r.Verb == "" || r.Resource == "" && !(r.IsNonResourceURL && r.Path != "") {
		return errors.New("a review needs verb and resource, or verb, isNonResourceURL and path")
	}
	r.Kind, r.APIVersion = "SubjectAccessReview", "authorization.openshift.io/v1"
	if r.Scopes == nil {
		r.Scopes = []string{}
	}
	return nil
}

// addReviews adds a review or a list of reviews.
func (s *Settings) addReviews(text string) error {
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	var reviews []Review
	var err error
	if bytes.HasPrefix(bytes.TrimSpace([]byte(text)), []byte("[")) {
		err = decoder.Decode(&reviews)
	} else {
		reviews = make([]Review, 1)
		err = decoder.Decode(&reviews[0])
	}
	if err == nil && len(reviews) == 0 {
		err = errors.New("an empty list would admit every user")
	}
	if err == nil {
		if _, end := decoder.Token(); end != io.EOF {
			err = errors.New("unexpected text after the JSON")
		}
	}
	s.Reviews = append(s.Reviews, reviews...)
	return err
}
