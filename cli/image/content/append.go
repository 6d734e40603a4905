package content

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
)

// appendCommand holds the state of `oc image append`.
type appendCommand struct {
	genericiooptions.IOStreams
	access access
	filter filter

	from, to             string
	image, meta, created string
	dropHistory, dryRun  bool
}

func newAppend(streams genericiooptions.IOStreams) *cobra.Command {
	a := &appendCommand{IOStreams: streams}
	command := &cobra.Command{
		Use: "append --to=IMAGE [--from=IMAGE] [LAYER.tar.gz...]", Short: "Add layers to images and push them to a registry",
		Long: `Add layers, which are tar archives, to an image, change its configuration, and push the result.

Without --from, the image starts empty. --image is JSON that is merged into the image's configuration: it replaces values and lists such as
Env, and merges labels. --meta has precedence over it.`,
		Example: `  # Remove the entrypoint of an image
  oc image append --from=registry.example.com/app:v1 --to=registry.example.com/app:plain --image='{"Entrypoint":null}'

  # Add a layer
  oc image append --from=registry.example.com/app:v1 --to=registry.example.com/app:v2 layer.tar.gz

  # Create an image with the same digest on every machine and day
  oc image append --to=registry.example.com/data:v1 --created-at=0 --drop-history layer.tar.gz`,
		Run: func(command *cobra.Command, args []string) {
			util.CheckErr(a.run(command.Context(), args))
		},
	}
	flags := command.Flags()
	a.access.addFlags(flags)
	a.filter.addFlags(flags)
	flags.StringVar(&a.from, "from", "", "Base image. By default, the image starts empty.")
	flags.StringVar(&a.to, "to", "", "Destination of the image.")
	flags.StringVar(&a.image, "image", "", "JSON to merge into the image's configuration, such as {\"Cmd\":[\"/bin/app\"]}.")
	flags.StringVar(&a.meta, "meta", "", "JSON to merge into the image's other metadata, such as {\"architecture\":\"arm64\"}.")
	flags.StringVar(&a.created, "created-at", "", "Creation time of the image, in RFC 3339 or as milliseconds since 1970, instead of now.")
	flags.BoolVar(&a.dropHistory, "drop-history", false, "Remove the image's history.")
	flags.BoolVar(&a.dryRun, "dry-run", false, "Print what would be pushed, without pushing it.")
	flags.BoolVar(&a.access.force, "force", false, "Send layers even if the registry has them.")
	return command
}

func (a *appendCommand) run(ctx context.Context, files []string) error {
	if a.to == "" {
		return errors.New("set the image's destination with --to")
	}
	if len(files) == 0 && a.from == "" {
		return errors.New("specify layers, or an image with --from, or both")
	}
	created, err := a.createdAt(time.Now())
	if err != nil {
		return err
	}
	if err := a.filter.complete(); err != nil {
		return err
	}
	registries, err := a.access.open(ctx, a.ErrOut)
	if err != nil {
		return err
	}
	to, err := name.ParseReference(a.to, registries.names...)
	if err != nil {
		return err
	}
	if _, digest := to.(name.Digest); digest {
		return fmt.Errorf("--to %q: set a tag, not a digest, because the digest depends on the new image", a.to)
	}
	image, err := a.base(registries)
	if err != nil {
		return err
	}
	if image, err = addLayers(image, files, created); err != nil {
		return err
	}
	if image, err = a.configure(image, created); err != nil {
		return err
	}
	return a.push(registries, to, image)
}

// createdAt parses --created-at. The default is the current time, now.
func (a *appendCommand) createdAt(now time.Time) (time.Time, error) {
	if a.created == "" {
		return now.UTC(), nil
	}
	if milliseconds, err := strconv.ParseInt(a.created, 10, 64); err == nil {
		return time.UnixMilli(milliseconds).UTC(), nil
	}
	at, err := time.Parse(time.RFC3339, a.created)
	if err != nil {
		return at, fmt.Errorf("--created-at %q must be a time such as 2018-10-10T00:00:00Z or milliseconds since 1970", a.created)
	}
	return at.UTC(), nil
}

// base returns the base image: the image that --from specifies, or an empty image for linux/amd64.
func (a *appendCommand) base(registries *registries) (v1.Image, error) {
	if a.from != "" {
		desc, _, err := registries.get(a.from)
		if err != nil {
			return nil, err
		}
		return a.filter.single(desc, true)
	}
	config, err := empty.Image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", "amd64"
	return mutate.ConfigFile(empty.Image, config)
}

// addLayers adds archives to an image as layers. Each file is read twice, to compute its digest and
// to push it.
func addLayers(image v1.Image, files []string, created time.Time) (v1.Image, error) {
	kind := types.DockerLayer
	if media, err := image.MediaType(); err != nil {
		return nil, err
	} else if media == types.OCIManifestSchema1 {
		kind = types.OCILayer
	}
	for _, file := range files {
		layer, err := tarball.LayerFromFile(file, tarball.WithMediaType(kind))
		if err != nil {
			return nil, fmt.Errorf("read layer %q: %w", file, err)
		}
		addition := mutate.Addendum{Layer: layer, MediaType: kind, History: v1.History{Created: v1.Time{Time: created}, Comment: "added by oc image append"}}
		if image, err = mutate.Append(image, addition); err != nil {
			return nil, fmt.Errorf("add layer %q: %w", file, err)
		}
	}
	return image, nil
}

// configure sets an image's creation time and merges --image and --meta into its configuration.
func (a *appendCommand) configure(image v1.Image, created time.Time) (v1.Image, error) {
	config, err := image.ConfigFile()
	if err != nil {
		return nil, explain("read configuration of", a.from, err)
	}
	config = config.DeepCopy()
	config.Created = v1.Time{Time: created}
	if a.dropHistory {
		config.History, config.Container, config.DockerVersion, config.Author, config.Config.Image = nil, "", "", "", ""
	}
	layers := slices.Clone(config.RootFS.DiffIDs)
	for _, over := range []struct {
		flag, text string
		into       any
	}{{"--image", a.image, &config.Config}, {"--meta", a.meta, config}} {
		if over.text == "" {
			continue
		}
		if err := json.Unmarshal([]byte(over.text), over.into); err != nil {
			return nil, fmt.Errorf("decode %s: %w; it must be an image configuration as JSON", over.flag, err)
		}
	}
	if !slices.Equal(layers, config.RootFS.DiffIDs) {
		return nil, errors.New("--meta must not contain layers (rootfs): the archives are the layers")
	}
	return mutate.ConfigFile(image, config)
}

func (a *appendCommand) push(registries *registries, to name.Reference, image v1.Image) error {
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	if a.dryRun {
		layers, err := image.Layers()
		if err != nil {
			return err
		}
		fmt.Fprintf(a.Out, "Would push image %s with %d layers to %s\n", digest, len(layers), to)
		return nil
	}
	defer registries.progress.end()
	if err := remote.Write(to, image, registries.options...); err != nil {
		return explain("push to", a.to, err)
	}
	registries.progress.line(a.Out, fmt.Sprintf("Pushed image %s to %s", digest, to))
	return nil
}
