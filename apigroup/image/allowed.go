package image

import (
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"

	imagev1 "github.com/openshift/api/image/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/slipway-platform/slipway/apigroup/image/record"
)

// AllowedRegistry is a pattern for registries from which users can import or tag images.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, 11.2 (registries allowed for
// import).
type AllowedRegistry struct {
	// Domain is a host with an optional port. In the host and in the port, `*` matches any text,
	// and `?` matches one character.
	Domain string
	// Insecure changes the default port from 443 to 80.
	Insecure bool
}

// Default registry ports, for registry names without a port.
const (
	securePort   = "443"
	insecurePort = "80"
)

// importPorts returns the default ports of an import's registry.
func importPorts(insecure bool) []string {
	if insecure {
		return []string{insecurePort}
	}
	return []string{securePort}
}

// streamPorts returns the default ports of a stream's registry. As in OpenShift 3.11, a registry
// that is allowed with TLS is also allowed for insecure tags and streams. The reason is that they
// use TLS if the registry supports it.
func streamPorts(insecure bool) []string {
	if insecure {
		return []string{securePort, insecurePort}
	}
	return []string{securePort}
}

// split splits the domain into a host pattern and a port pattern.
func (a AllowedRegistry) split() (host, port string) {
	if host, port, err := net.SplitHostPort(a.Domain); err == nil {
		return host, port
	}
	return a.Domain, importPorts(a.Insecure)[0]
}

// matches reports whether the pattern matches a registry on any of its ports. A registry name that
// contains a port has only that port. Otherwise, defaults contains the ports.
func (a AllowedRegistry) matches(registry string, defaults []string) bool {
	host, port, err := net.SplitHostPort(registry)
	ports := []string{port}
	if err != nil {
		host, ports = registry, defaults
	}
	wantHost, wantPort := a.split()
	if fits, err := path.Match(wantHost, host); err != nil || !fits {
		return false
	}
	return slices.ContainsFunc(ports, func(port string) bool {
		fits, err := path.Match(wantPort, port)
		return err == nil && fits
	})
}

// checkAllowed returns the reason why an image must not be used, or "". defaults contains the ports
// that apply if the registry's name does not contain a port. The cluster's own registry is always
// allowed.
func (o Options) checkAllowed(reference string, defaults []string) string {
	if o.Allowed == nil {
		return ""
	}
	parsed, err := record.ParseReference(reference)
	if err != nil || o.integrated(parsed.Registry) { // another check reports invalid references
		return ""
	}
	if slices.ContainsFunc(o.Allowed, func(a AllowedRegistry) bool { return a.matches(parsed.Registry, defaults) }) {
		return ""
	}
	var list []string
	for _, allowed := range o.Allowed {
		host, port := allowed.split()
		list = append(list, strconv.Quote(net.JoinHostPort(host, port)))
	}
	if more := len(list) - maxListed; more > 0 {
		list = append(list[:maxListed-1], fmt.Sprintf("and %d more ...", more+1))
	}
	return fmt.Sprintf("registry %q not allowed by whitelist: %s", parsed.Registry, strings.Join(list, ", "))
}

// maxListed is the maximum number of allowed registries in an error message.
const maxListed = 5

// checkRepository returns an error if the registry of a stream's repository is not allowed, unless
// the old stream already refers to the repository.
func (o Options) checkRepository(stream, old *imagev1.ImageStream) field.ErrorList {
	repository := stream.Spec.DockerImageRepository
	if repository == "" || had(old, repository) {
		return nil
	}
	if reason := o.checkAllowed(repository, streamPorts(insecureStream(stream))); reason != "" {
		return field.ErrorList{field.Forbidden(field.NewPath("spec", "dockerImageRepository"), reason)}
	}
	return nil
}

// had reports whether a stream already refers to an image or a repository. stream can be nil.
func had(stream *imagev1.ImageStream, reference string) bool {
	if stream == nil {
		return false
	}
	if stream.Spec.DockerImageRepository == reference {
		return true
	}
	for _, tag := range stream.Spec.Tags {
		if tag.From != nil && tag.From.Kind == dockerKind && tag.From.Name == reference {
			return true
		}
	}
	for _, list := range stream.Status.Tags {
		for _, event := range list.Items {
			if event.DockerImageReference == reference {
				return true
			}
		}
	}
	return false
}

// checkTags returns errors for tags that refer to registries that are not allowed. It accepts
// images that the old stream already refers to. As in OpenShift 3.11, a stream keeps an image that
// was once allowed, whether or not the registry is insecure.
func (o Options) checkTags(stream, old *imagev1.ImageStream) (problems field.ErrorList) {
	for i := range stream.Spec.Tags {
		tag := &stream.Spec.Tags[i]
		if tag.From == nil || tag.From.Kind != dockerKind {
			continue
		}
		if had(old, tag.From.Name) {
			continue
		}
		if reason := o.checkAllowed(tag.From.Name, streamPorts(tag.ImportPolicy.Insecure || insecureStream(stream))); reason != "" {
			problems = append(problems, field.Forbidden(field.NewPath("spec", "tags").Key(tag.Name).Child("from", "name"), reason))
		}
	}
	return problems
}

// checkHistory returns errors for new images in the status whose registries are not allowed.
func (o Options) checkHistory(stream, old *imagev1.ImageStream) (problems field.ErrorList) {
	for _, list := range stream.Status.Tags {
		if len(list.Items) == 0 {
			continue
		}
		reference := list.Items[0].DockerImageReference
		if had(old, reference) {
			continue
		}
		tag := specTag(stream, list.Tag)
		insecure := insecureStream(stream) || tag != nil && tag.ImportPolicy.Insecure
		if reason := o.checkAllowed(reference, streamPorts(insecure)); reason != "" {
			problems = append(problems, field.Forbidden(
				field.NewPath("status", "tags").Key(list.Tag).Child("items").Index(0).Child("dockerImageReference"), reason))
		}
	}
	return problems
}

// insecureAnnotation is an image stream annotation. If its value is "true", registry certificates
// are not verified.
const insecureAnnotation = "openshift.io/image.insecureRepository"

func insecureStream(stream *imagev1.ImageStream) bool {
	return stream.Annotations[insecureAnnotation] == "true"
}
