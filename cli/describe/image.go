package describe

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/docker/go-units"
	"github.com/openshift/api/image/docker10"
	imagev1 "github.com/openshift/api/image/v1"
)

// imageStream writes an image stream. For each tag, it writes the source and the images, newest
// first. A star marks the current image.
func imageStream(p *page, s *imagev1.ImageStream) error {
	p.metadata(s.ObjectMeta)
	p.field("Docker Pull Spec", s.Status.DockerImageRepository)
	if s.Status.PublicDockerImageRepository != "" {
		p.field("Public Pull Spec", s.Status.PublicDockerImageRepository)
	}
	p.field("Image Lookup", fmt.Sprintf("local=%t", s.Spec.LookupPolicy.Local))
	images, tags := map[string]bool{}, map[string]bool{}
	history := map[string]imagev1.NamedTagEventList{}
	for _, list := range s.Status.Tags {
		history[list.Tag], tags[list.Tag] = list, true
		for _, event := range list.Items {
			images[event.Image] = true
		}
	}
	specs := map[string]imagev1.TagReference{}
	for _, tag := range s.Spec.Tags {
		specs[tag.Name], tags[tag.Name] = tag, true
	}
	p.field("Unique Images", len(images))
	p.field("Tags", len(tags))
	for _, name := range slices.SortedFunc(maps.Keys(tags), latestFirst) {
		p.line("\n%s", name)
		tag(p, specs[name], history[name])
	}
	return nil
}

// latestFirst compares tag names. The latest tag precedes all other tags.
func latestFirst(a, b string) int {
	const latest = "latest"
	switch {
	case a == b:
		return 0
	case a == latest:
		return -1
	case b == latest:
		return 1
	}
	return strings.Compare(a, b)
}

// tag writes one tag of an image stream: its spec, its current image and its previous images.
func tag(p *page, spec imagev1.TagReference, history imagev1.NamedTagEventList) {
	switch {
	case spec.From == nil:
		p.line("  no spec tag")
	case spec.Reference:
		p.line("  reference to %s", spec.From.Name)
	case spec.ImportPolicy.Scheduled:
		p.line("  updates automatically from registry %s", spec.From.Name)
	default:
		p.line("  tagged from %s", spec.From.Name)
	}
	if spec.ImportPolicy.Insecure {
		p.line("    will use insecure HTTPS or HTTP connections")
	}
	for _, condition := range history.Conditions {
		if condition.Type == imagev1.ImportSuccess && condition.Status != "True" {
			p.line("  ! error: Import failed (%s): %s", condition.Reason, condition.Message)
			p.line("      %s", p.ago(condition.LastTransitionTime))
		}
	}
	for i, event := range history.Items {
		mark := " "
		if i == 0 {
			mark = "*"
		}
		p.line("\n  %s %s", mark, event.DockerImageReference)
		p.line("      %s", p.ago(event.Created))
	}
}

// imageStreamTag writes the image of an image stream tag.
func imageStreamTag(p *page, t *imagev1.ImageStreamTag) error { return image(p, &t.Image) }

// image writes an image, its metadata and its container configuration.
func image(p *page, i *imagev1.Image) error {
	p.field("Image Name", i.Name)
	p.field("Docker Image", i.DockerImageReference)
	p.metadata(i.ObjectMeta)
	content := docker10.DockerImage{}
	if len(i.DockerImageMetadata.Raw) > 0 {
		if err := json.Unmarshal(i.DockerImageMetadata.Raw, &content); err != nil {
			return fmt.Errorf("read metadata of image %q: %w", i.Name, err)
		}
	}
	p.field("Image Size", size(content.Size, i.DockerImageLayers))
	if len(i.DockerImageLayers) > 0 {
		p.lines("Layers", layers(i.DockerImageLayers))
	}
	p.field("Image Created", p.ago(content.Created))
	p.field("Author", content.Author)
	p.field("Arch", content.Architecture)
	config := content.Config
	if config == nil {
		config = &docker10.DockerConfig{}
	}
	p.field("Entrypoint", strings.Join(config.Entrypoint, " "))
	p.field("Command", strings.Join(config.Cmd, " "))
	p.field("Working Dir", config.WorkingDir)
	p.field("User", config.User)
	p.field("Exposes Ports", strings.Join(slices.Sorted(maps.Keys(config.ExposedPorts)), ", "))
	p.lines("Docker Labels", pairs(config.Labels))
	p.lines("Environment", config.Env)
	if len(config.Volumes) > 0 {
		p.lines("Volumes", slices.Sorted(maps.Keys(config.Volumes)))
	}
	return nil
}

// size returns an image's size as text. If the image has several layers, the text includes the
// sizes of the first and last layers.
func size(total int64, layers []imagev1.ImageLayer) string {
	text := bytesOf(total)
	layers = slices.DeleteFunc(slices.Clone(layers), func(l imagev1.ImageLayer) bool { return l.LayerSize == 0 })
	switch len(layers) {
	case 0:
		return text
	case 1:
		return text + " in 1 layer"
	}
	return fmt.Sprintf("%s (first layer %s, last binary layer %s)", text,
		bytesOf(layers[0].LayerSize), bytesOf(layers[len(layers)-1].LayerSize))
}

// layers returns the size and digest of each layer.
func layers(layers []imagev1.ImageLayer) (lines []string) {
	for _, layer := range layers {
		lines = append(lines, fmt.Sprintf("%-8s %s", bytesOf(layer.LayerSize), layer.Name))
	}
	return lines
}

// bytesOf formats a number of bytes with a decimal unit, such as 251.2 MB.
func bytesOf(n int64) string {
	return units.CustomSize("%.4g %s", float64(n), 1000, []string{"B", "kB", "MB", "GB", "TB", "PB"})
}
