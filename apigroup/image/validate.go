package image

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	imagev1 "github.com/openshift/api/image/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/slipway-platform/slipway/apiserver"
)

// Kinds of a tag's target.
const (
	tagKind    = "ImageStreamTag"
	imageKind  = "ImageStreamImage"
	dockerKind = "DockerImage"
)

// maxRepository is the maximum length of a repository name.
const maxRepository = 255

// Grammar of image references, as in the distribution project.
var (
	component = regexp.MustCompile(`^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$`)
	tagName   = regexp.MustCompile(`^[\w][\w.-]{0,127}$`)
	digest    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}$`)
	host      = regexp.MustCompile(`^(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[0-9a-fA-F:]+\])(?::[0-9]+)?$`)
)

func validImageName(name string, prefix bool) []string {
	if name == "" {
		return []string{"name the image"}
	}
	return apiserver.ValidPathSegment(name, prefix)
}

func validStreamName(name string, prefix bool) []string {
	reasons := apiserver.ValidPathSegment(name, prefix)
	if prefix { // the server appends characters to a prefix such as "builds-"
		name += "x"
	}
	if !component.MatchString(name) {
		reasons = append(reasons, fmt.Sprintf("must match %q", component))
	}
	return reasons
}

func validateImage(_ context.Context, image, _ *imagev1.Image) field.ErrorList {
	return validateContent(image, nil)
}

func validateContent(image *imagev1.Image, at *field.Path) (problems field.ErrorList) {
	in := at.Child("dockerImageReference")
	if image.DockerImageReference == "" {
		problems = append(problems, field.Required(in, "set the location of the image in a registry"))
	} else if err := parse(image.DockerImageReference); err != nil {
		problems = append(problems, field.Invalid(in, image.DockerImageReference, err.Error()))
	}
	for i := range image.Signatures {
		signature, in := &image.Signatures[i], at.Child("signatures").Index(i)
		if signature.Type == "" {
			problems = append(problems, field.Required(in.Child("type"), "set the type of the signature"))
		}
		if len(signature.Content) == 0 {
			problems = append(problems, field.Required(in.Child("content"), "set the content of the signature"))
		}
	}
	return problems
}

func validateStream(_ context.Context, stream, _ *imagev1.ImageStream) (problems field.ErrorList) {
	if name := stream.Namespace + "/" + stream.Name; len(name) > maxRepository {
		problems = append(problems, field.Invalid(field.NewPath("metadata", "name"), stream.Name,
			fmt.Sprintf("'namespace/name' cannot be longer than %d characters", maxRepository)))
	}
	at := field.NewPath("spec")
	if repository := stream.Spec.DockerImageRepository; repository != "" {
		in := at.Child("dockerImageRepository")
		if err := parse(repository); err != nil {
			problems = append(problems, field.Invalid(in, repository, err.Error()))
		} else if last := repository[strings.LastIndex(repository, "/")+1:]; strings.ContainsAny(last, ":@") {
			problems = append(problems, field.Invalid(in, repository, "the repository name may not contain a tag or an ID"))
		}
	}
	seen := map[string]bool{}
	for i := range stream.Spec.Tags {
		tag, in := &stream.Spec.Tags[i], at.Child("tags").Index(i)
		if seen[tag.Name] {
			problems = append(problems, field.Duplicate(in.Child("name"), tag.Name))
		}
		seen[tag.Name] = true
		problems = append(problems, validateTag(tag, in)...)
	}
	return problems
}

func validateStreamStatus(_ context.Context, stream, _ *imagev1.ImageStream) (problems field.ErrorList) {
	for i, list := range stream.Status.Tags {
		for j, event := range list.Items {
			if event.DockerImageReference == "" {
				problems = append(problems, field.Required(field.NewPath("status", "tags").Index(i).Child("items").Index(j).Child("dockerImageReference"),
					"set the location of the image in a registry"))
			}
		}
	}
	return problems
}

func validateTagName(name string, at *field.Path) field.ErrorList {
	if !tagName.MatchString(name) {
		return field.ErrorList{field.Invalid(at, name, fmt.Sprintf("must match %q", tagName))}
	}
	return nil
}

func validateTag(tag *imagev1.TagReference, at *field.Path) (problems field.ErrorList) {
	problems = append(problems, validateTagName(tag.Name, at.Child("name"))...)
	policies := []imagev1.TagReferencePolicyType{imagev1.SourceTagReferencePolicy, imagev1.LocalTagReferencePolicy}
	if policy := tag.ReferencePolicy.Type; policy != policies[0] && policy != policies[1] {
		problems = append(problems, field.NotSupported(at.Child("referencePolicy", "type"), policy, policies))
	}
	modes := []imagev1.ImportModeType{imagev1.ImportModeLegacy, imagev1.ImportModePreserveOriginal}
	if mode := tag.ImportPolicy.ImportMode; mode != modes[0] && mode != modes[1] {
		problems = append(problems, field.NotSupported(at.Child("importPolicy", "importMode"), mode, modes))
	}
	if tag.From == nil {
		return problems
	}
	name, in := tag.From.Name, at.Child("from")
	scheduled := at.Child("importPolicy", "scheduled")
	switch tag.From.Kind {
	case dockerKind:
		if err := parse(name); err != nil {
			problems = append(problems, field.Invalid(in.Child("name"), name, err.Error()))
		} else if tag.ImportPolicy.Scheduled && strings.Contains(name, "@") {
			problems = append(problems, field.Invalid(in.Child("name"), name, "only tags can be scheduled for import"))
		}
		return problems
	case tagKind, imageKind:
		if name == "" {
			problems = append(problems, field.Required(in.Child("name"), "name the tag or image"))
		}
		if tag.From.Kind == imageKind && !strings.Contains(name, "@") {
			problems = append(problems, field.Invalid(in.Child("name"), name, "an ImageStreamImage must be in the form <name>@<id>"))
		}
		if tag.ImportPolicy.Scheduled {
			problems = append(problems, field.Invalid(scheduled, true, "only tags pointing to Docker repositories may be scheduled for background import"))
		}
	default:
		problems = append(problems, field.NotSupported(in.Child("kind"), tag.From.Kind, []string{dockerKind, imageKind, tagKind}))
	}
	return problems
}

// parse returns an error if a reference such as "registry.example.com:5000/team/app:v1" or
// "app@sha256:..." is invalid.
func parse(reference string) error {
	name, id, hasID := strings.Cut(reference, "@")
	if hasID && !digest.MatchString(id) {
		return fmt.Errorf("%q is not a digest such as sha256:...", id)
	}
	slash := strings.LastIndex(name, "/")
	if last, tag, ok := strings.Cut(name[slash+1:], ":"); ok {
		if !tagName.MatchString(tag) {
			return fmt.Errorf("%q is not a valid tag", tag)
		}
		name = name[:slash+1] + last
	}
	parts := strings.Split(name, "/")
	if first := parts[0]; len(parts) > 1 && (strings.ContainsAny(first, ".:") || first == "localhost") {
		if !host.MatchString(first) {
			return fmt.Errorf("%q is not a registry", first)
		}
		parts = parts[1:]
	}
	for _, part := range parts {
		if !component.MatchString(part) {
			return fmt.Errorf("invalid reference format: %q does not match %q", part, component)
		}
	}
	if len(strings.Join(parts, "/")) > maxRepository {
		return fmt.Errorf("repository name must not be more than %d characters", maxRepository)
	}
	return nil
}
