package image

import (
	"errors"
	"fmt"
	"strings"

	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// request returns an ImageStreamImport. It imports a single tag, a repository, or all tags of a
// stream.
func (i *imageImport) request(stream *imagev1.ImageStream, tag string) (request *imagev1.ImageStreamImport, err error) {
	request = &imagev1.ImageStreamImport{ObjectMeta: metav1.ObjectMeta{Namespace: i.namespace, Name: stream.Name}}
	if !i.all {
		request.Spec.Images, err = i.one(stream, tag)
		return request, err
	}
	from, expected := i.from, stream.Spec.DockerImageRepository
	switch {
	case from == "" && expected == "":
		request.Spec.Images, err = i.every(stream)
		return request, err
	case from == "":
		from = expected
	case from != expected && !i.confirm && expected == "":
		return nil, errors.New("the image stream does not import a whole repository yet, pass --confirm to change this")
	case from != expected && !i.confirm:
		return nil, fmt.Errorf("the image stream imports the repository %q, pass --confirm to import %q instead", expected, from)
	}
	request.Spec.Repository = &imagev1.RepositoryImportSpec{
		From: corev1.ObjectReference{Kind: "DockerImage", Name: from}, ImportPolicy: i.importPolicy(), ReferencePolicy: i.referencePolicy(),
	}
	return request, nil
}

func (i *imageImport) importPolicy() imagev1.TagImportPolicy {
	return imagev1.TagImportPolicy{Insecure: i.insecure, Scheduled: i.scheduled, ImportMode: imagev1.ImportModeType(i.mode)}
}

func (i *imageImport) referencePolicy() imagev1.TagReferencePolicy {
	if strings.EqualFold(i.policy, "local") {
		return imagev1.TagReferencePolicy{Type: imagev1.LocalTagReferencePolicy}
	}
	return imagev1.TagReferencePolicy{Type: imagev1.SourceTagReferencePolicy}
}

// one returns the import spec for a tag. If the tag follows another tag in the stream, one returns
// the import spec for that other tag.
func (i *imageImport) one(stream *imagev1.ImageStream, tag string) ([]imagev1.ImageImportSpec, error) {
	existing, err := followed(stream, tag)
	if err != nil {
		return nil, err
	}
	if existing != nil && existing.From.Kind != "DockerImage" {
		return nil, fmt.Errorf("tag %q refers to %s %q; only a tag that refers to a DockerImage can be imported", tag, existing.From.Kind, existing.From.Name)
	}
	from := i.from
	switch {
	case existing != nil && from != "" && from != existing.From.Name && !i.confirm:
		return nil, fmt.Errorf("tag %q refers to %q: use the 'tag' command if you want to change the source, or pass --confirm to import from %q instead", existing.Name, existing.From.Name, from)
	case existing != nil && (from == "" || from == existing.From.Name):
		return []imagev1.ImageImportSpec{i.again(existing)}, nil
	case from == "" && tag == "latest":
		from = stream.Spec.DockerImageRepository
	}
	if from == "" {
		return nil, fmt.Errorf("the tag %q does not exist on the image stream - choose an existing tag to import or use the 'tag' command to create a new tag", tag)
	}
	if existing != nil {
		tag = existing.Name
	}
	return []imagev1.ImageImportSpec{{
		From: corev1.ObjectReference{Kind: "DockerImage", Name: from}, To: &corev1.LocalObjectReference{Name: tag},
		ImportPolicy: i.importPolicy(), ReferencePolicy: i.referencePolicy(),
	}}, nil
}

// every returns import specs for all tags in a stream that refer to an image in a registry.
func (i *imageImport) every(stream *imagev1.ImageStream) (specs []imagev1.ImageImportSpec, err error) {
	for n := range stream.Spec.Tags {
		if tag := &stream.Spec.Tags[n]; tag.From != nil && tag.From.Kind == "DockerImage" {
			specs = append(specs, i.again(tag))
		}
	}
	if len(specs) == 0 {
		return nil, fmt.Errorf("image stream %q has no tags that refer to images of registries: set a repository with --from", stream.Name)
	}
	return specs, nil
}

// again returns an import spec that imports a tag again, with the tag's current source and
// policies.
func (i *imageImport) again(tag *imagev1.TagReference) imagev1.ImageImportSpec {
	policy := tag.ImportPolicy
	policy.Insecure, policy.Scheduled = policy.Insecure || i.insecure, policy.Scheduled || i.scheduled
	return imagev1.ImageImportSpec{
		From: *tag.From, To: &corev1.LocalObjectReference{Name: tag.Name}, ImportPolicy: policy, ReferencePolicy: tag.ReferencePolicy,
	}
}

// followed resolves a tag that follows other tags of the stream, and returns the last tag in the
// chain. It returns nil if a tag does not exist or has no source. It returns an error if the chain
// is a cycle or contains a tag of another stream.
func followed(stream *imagev1.ImageStream, name string) (*imagev1.TagReference, error) {
	seen := map[string]bool{}
	for !seen[name] {
		seen[name] = true
		var tag *imagev1.TagReference
		for n := range stream.Spec.Tags {
			if stream.Spec.Tags[n].Name == name {
				tag = &stream.Spec.Tags[n]
			}
		}
		if tag == nil || tag.From == nil {
			return nil, nil
		}
		if tag.From.Kind != "ImageStreamTag" {
			return tag, nil
		}
		next, ok := strings.CutPrefix(tag.From.Name, stream.Name+":")
		if foreign := tag.From.Namespace != "" && tag.From.Namespace != stream.Namespace; foreign || !ok && strings.Contains(next, ":") {
			return nil, fmt.Errorf("tag %q follows a tag of another image stream, %q; import that tag instead", name, tag.From.Name)
		}
		name = next
	}
	return nil, fmt.Errorf("tag %q follows itself", name)
}
