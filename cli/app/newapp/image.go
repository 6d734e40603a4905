package newapp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/openshift/api/image/docker10"
	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
)

// Image is an image found by Finder.
type Image struct {
	// Name is the requested name. Reference is the image's pull spec. For an image from a registry,
	// it is the image's name.
	Name, Reference string
	// Namespace, Stream and Tag identify the image stream tag. Namespace and Stream are empty for
	// an image from a registry. Tag is always set.
	Namespace, Stream, Tag string
	// ID is the image's ID. Created is the time at which the image was created, if available.
	ID      string
	Created time.Time
	// Ports (such as 8080/tcp), Volumes and User are the values that the image declares.
	Ports, Volumes []string
	User           string
	// Command is the entrypoint and its arguments.
	Command []string
	// Labels contains the image's labels. Annotations contains the tag's annotations.
	Labels, Annotations map[string]string
	// Missing means that the image does not exist yet, so that only its name and tag are available.
	Missing bool
	// Insecure means that the registry's certificate is not verified.
	Insecure bool
}

// describe copies properties from the image's metadata to i.
func (i *Image) describe(image *imagev1.Image) error {
	i.ID = image.Name
	metadata := &docker10.DockerImage{}
	if len(image.DockerImageMetadata.Raw) > 0 {
		if err := json.Unmarshal(image.DockerImageMetadata.Raw, metadata); err != nil {
			return fmt.Errorf("read image %q: %w", i.Name, err)
		}
	}
	i.Created = metadata.Created.Time
	config := cmp.Or(metadata.Config, &metadata.ContainerConfig)
	i.Ports, i.Volumes = slices.Sorted(maps.Keys(config.ExposedPorts)), slices.Sorted(maps.Keys(config.Volumes))
	i.User, i.Labels, i.Command = config.User, config.Labels, slices.Concat(config.Entrypoint, config.Cmd)
	return nil
}

// Builder reports whether the image is an S2I builder, according to the image's labels or the tag's
// annotations.
func (i *Image) Builder() bool {
	for _, label := range []string{"io.openshift.s2i.scripts-url", "io.s2i.scripts-url"} {
		if i.Labels[label] != "" {
			return true
		}
	}
	return slices.Contains(strings.Split(i.Annotations["tags"], ","), "builder")
}

// Hidden reports whether the author of an image stream has hidden a tag from searches.
func Hidden(stream *imagev1.ImageStream, tag string) bool {
	return slices.ContainsFunc(stream.Spec.Tags, func(item imagev1.TagReference) bool {
		return item.Name == tag && slices.Contains(strings.Split(item.Annotations["tags"], ","), "hidden")
	})
}

// tag returns a reference to the image stream tag. It omits the reference's namespace if it equals
// namespace.
func (i *Image) tag(namespace string) *corev1.ObjectReference {
	reference := &corev1.ObjectReference{Kind: "ImageStreamTag", Name: i.Stream + ":" + i.Tag}
	if i.Namespace != namespace {
		reference.Namespace = i.Namespace
	}
	return reference
}

// short returns the image's short ID and, if available, its age.
func (i *Image) short() string {
	id := strings.TrimPrefix(i.ID, "sha256:")
	id = id[:min(len(id), shortID)]
	if i.Created.IsZero() {
		return id
	}
	return fmt.Sprintf("%s (%s old)", id, strings.ToLower(units.HumanDuration(time.Since(i.Created))))
}

const shortID = 7

// ports parses and sorts ports such as 8080/tcp and 53/udp. It omits duplicates and invalid ports.
func ports(texts []string) (all []corev1.ContainerPort) {
	for _, text := range texts {
		number, protocol, _ := strings.Cut(text, "/")
		port, err := strconv.ParseUint(number, 10, 16)
		read := corev1.ContainerPort{ContainerPort: int32(port), Protocol: corev1.Protocol(strings.ToUpper(cmp.Or(protocol, "tcp")))}
		if err == nil && port > 0 && !slices.Contains(all, read) {
			all = append(all, read)
		}
	}
	slices.SortFunc(all, func(a, b corev1.ContainerPort) int { return cmp.Compare(a.ContainerPort, b.ContainerPort) })
	return all
}
