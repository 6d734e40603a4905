package image

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	imagev1 "github.com/openshift/api/image/v1"
	imageclient "github.com/openshift/client-go/image/clientset/versioned/typed/image/v1"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/apigroup/image/record"
	"github.com/slipway-platform/slipway/apigroup/image/retention"
)

// pruning holds the state of `oc adm prune images`.
type pruning struct {
	genericiooptions.IOStreams
	client   dynamic.Interface
	images   imageclient.ImageV1Interface
	registry requestFunc

	keep                                   retention.Rules
	at                                     place
	confirm, pruneRegistry, ignoreInvalids bool
}

// NewPrune returns the `oc adm prune images` command.
func NewPrune(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	p := &pruning{IOStreams: streams}
	command := &cobra.Command{
		Use: "images", Short: "Remove unreferenced images",
		Long: `Remove unreferenced images: the history of image streams, the images, and their content in the cluster's registry.

An image is kept if it is one of the last revisions of a tag, or if a pod, a controller of pods, a build or a build configuration
refers to it. Without --confirm, the command lists the images and removes nothing. It must reach the cluster's registry: set --registry-url if
the registry's own name cannot be resolved.`,
		Example: `  # List what the command would remove if it keeps three revisions of each tag, and images that are younger than an hour
  oc adm prune images --keep-tag-revisions=3 --keep-younger-than=60m

  # Remove these images
  oc adm prune images --keep-tag-revisions=3 --keep-younger-than=60m --confirm

  # Remove images that exceed the limits of their projects
  oc adm prune images --prune-over-size-limit --confirm`,
		Args: cobra.NoArgs,
		Run: func(command *cobra.Command, _ []string) {
			util.CheckErr(p.connect(factory, command))
			util.CheckErr(p.run(command.Context(), time.Now))
		},
	}
	flags := command.Flags()
	flags.BoolVar(&p.confirm, "confirm", false, "Remove the images. Without this flag, the command only lists them.")
	flags.BoolVar(&p.keep.External, "all", true, "Also remove images from other registries, and their content in the cluster's registry.")
	flags.IntVar(&p.keep.Revisions, "keep-tag-revisions", 3, "Number of images to keep in each tag's history.")
	flags.DurationVar(&p.keep.Younger, "keep-younger-than", time.Hour, "Keep younger images and image streams, and images that were used by younger pods that ended.")
	flags.BoolVar(&p.keep.OverSize, "prune-over-size-limit", false, "Remove images that exceed the limit range (openshift.io/Image) of their project.")
	flags.BoolVar(&p.pruneRegistry, "prune-registry", true, "Remove the content of the images from the registry's storage.")
	flags.BoolVar(&p.ignoreInvalids, "ignore-invalid-refs", false, "Ignore references to images that cannot be parsed, instead of removing nothing.")
	p.at.flags(flags)
	return command
}

func (p *pruning) connect(factory util.Factory, command *cobra.Command) error {
	if p.keep.Revisions < 0 || p.keep.Younger < 0 {
		return util.UsageErrorf(command, "--keep-tag-revisions and --keep-younger-than must not be negative")
	}
	if flags := command.Flags(); p.keep.OverSize && (flags.Changed("keep-tag-revisions") || flags.Changed("keep-younger-than")) {
		return util.UsageErrorf(command, "--prune-over-size-limit cannot be used with --keep-tag-revisions or --keep-younger-than")
	}
	if flag := command.Flag("namespace"); flag != nil && flag.Changed {
		p.keep.Namespace = flag.Value.String()
	}
	config, err := factory.ToRESTConfig()
	if err != nil {
		return err
	}
	if p.registry, err = p.at.connect(config); err != nil && p.confirm && p.pruneRegistry {
		return err
	}
	if p.images, err = imageclient.NewForConfig(config); err != nil {
		return err
	}
	p.client, err = factory.DynamicClient()
	return err
}

func (p *pruning) run(ctx context.Context, now func() time.Time) error {
	if !p.confirm {
		fmt.Fprintln(p.ErrOut, "Dry run enabled - no modifications will be made. Add --confirm to remove images")
	}
	if !p.pruneRegistry {
		fmt.Fprintln(p.Out, "Only API objects will be removed.  No modifications to the image registry will be made.")
	}
	before, err := p.read(ctx, now())
	if err != nil {
		return err
	}
	report := newReport(p.Out)
	defer report.flush()
	address := addressOf(before.Streams)
	garbage := p.keep.Find(before, now())
	if !p.confirm {
		report.streams(garbage.Streams)
		request := record.GarbageRequest{Images: retention.InRegistry(garbage.Images, before.Streams), DryRun: true}
		if err := p.cleanRegistry(ctx, address, request, report); err != nil {
			fmt.Fprintf(p.ErrOut, "Cannot list content of the registry: %v\n", err)
		}
		report.images(garbage.Images)
		return nil
	}
	if err := p.checkRegistry(ctx, address, retention.InRegistry(garbage.Images, before.Streams)); err != nil {
		return err
	}
	images, err := p.remove(ctx, before, now, report)
	report.images(images)
	request := record.GarbageRequest{Images: retention.InRegistry(images, before.Streams)}
	return errors.Join(err, p.cleanRegistry(ctx, address, request, report))
}

// checkRegistry returns an error if the registry does not respond or is read-only. Without this
// check, the command would delete Image objects whose content then remains in the registry.
func (p *pruning) checkRegistry(ctx context.Context, address string, images []record.GarbageImage) error {
	if !p.pruneRegistry || len(images) == 0 {
		return nil
	}
	if _, err := p.registry(ctx, address, record.GarbageRequest{}); err != nil {
		return fmt.Errorf("nothing is removed, because the registry cannot remove content: %w", err)
	}
	return nil
}

// cleanRegistry requests that the registry remove the images' content, and reports the removed
// content.
func (p *pruning) cleanRegistry(ctx context.Context, address string, request record.GarbageRequest, report *report) error {
	if !p.pruneRegistry || len(request.Images) == 0 {
		return nil
	}
	removed, err := p.registry(ctx, address, request)
	report.registry(removed)
	return err
}

// maxRounds is the maximum number of rounds in remove. Each round updates image streams and then
// rereads all objects.
const maxRounds = 5

// remove removes references to unused images from image streams, then deletes the images
// themselves. It returns the deleted images.
func (p *pruning) remove(ctx context.Context, s retention.State, now func() time.Time, report *report) (images []imagev1.Image, err error) {
	for round := 0; ; round++ {
		garbage := p.keep.Find(s, now())
		if len(garbage.Streams) == 0 {
			return p.removeImages(ctx, garbage.Images)
		}
		if round == maxRounds {
			// Other clients are still changing the image streams. Keep the images that the streams
			// contain.
			return p.removeImages(ctx, garbage.Unused(s))
		}
		for _, less := range garbage.Streams {
			_, err := p.images.ImageStreams(less.Stream.Namespace).UpdateStatus(ctx, less.Stream, metav1.UpdateOptions{})
			if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
				continue // the next round rereads the changed stream
			}
			if err != nil {
				return nil, fmt.Errorf("update image stream %q: %w", less.Stream.Namespace+"/"+less.Stream.Name, err)
			}
			report.streams([]retention.Shorter{less})
		}
		// Reread all objects, because an object that was created in the meantime might refer to one
		// of the images.
		if s, err = p.read(ctx, now()); err != nil {
			return nil, err
		}
	}
}

func (p *pruning) removeImages(ctx context.Context, images []imagev1.Image) (removed []imagev1.Image, err error) {
	for _, image := range images {
		conditions := metav1.NewUIDPreconditions(string(image.UID))
		conditions.ResourceVersion = &image.ResourceVersion
		err := p.images.Images().Delete(ctx, image.Name, metav1.DeleteOptions{Preconditions: conditions})
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			continue // the image has changed, so a new object might refer to it
		}
		if err != nil {
			return removed, fmt.Errorf("remove image %q: %w", image.Name, err)
		}
		removed = append(removed, image)
	}
	return removed, nil
}

// read reads the images and all objects that can refer to them. It returns an error if it cannot
// parse a reference, unless the user chose to ignore such references.
func (p *pruning) read(ctx context.Context, now time.Time) (retention.State, error) {
	s, err := p.keep.Read(ctx, p.images, p.client, now)
	if err == nil && len(s.References.Invalid) > 0 && !p.ignoreInvalids {
		err = fmt.Errorf("nothing is removed, because these references cannot be parsed; fix them, or use --ignore-invalid-refs:\n%w", errors.Join(s.References.Invalid...))
	}
	return s, err
}

// addressOf returns the host of the cluster's registry, or "". The host is in the status of image
// streams. addressOf prefers the public host.
func addressOf(streams []imagev1.ImageStream) string {
	for _, stream := range streams {
		for _, text := range slices.DeleteFunc([]string{stream.Status.PublicDockerImageRepository, stream.Status.DockerImageRepository}, func(s string) bool { return s == "" }) {
			if parsed, err := record.ParseReference(text); err == nil {
				return parsed.Registry
			}
		}
	}
	return ""
}
