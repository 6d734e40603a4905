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
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/apigroup/image/record"
	"github.com/slipway-platform/slipway/cli/objects"
)

// pruning is `oc adm prune images`.
type pruning struct {
	genericiooptions.IOStreams
	client   dynamic.Interface
	images   imageclient.ImageV1Interface
	registry asking

	keep                                   keeping
	at                                     place
	confirm, pruneRegistry, ignoreInvalids bool
}

// NewPrune returns `oc adm prune images`.
func NewPrune(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	p := &pruning{IOStreams: streams}
	command := &cobra.Command{
		Use: "images", Short: "Remove unreferenced images",
		Long: `Remove images that nothing refers to: the history of image streams, the images, and what the cluster's registry holds of them.

An image stays while a tag is it, or was it among its last revisions, and while a pod, something that makes pods, a build or a build configuration
names it. Without --confirm nothing is removed, only shown. The cluster's registry must be reachable: name its address with --registry-url where
its own name is not known.`,
		Example: `  # See what would go, keeping the last three revisions of each tag and what is younger than an hour
  oc adm prune images --keep-tag-revisions=3 --keep-younger-than=60m

  # Remove it
  oc adm prune images --keep-tag-revisions=3 --keep-younger-than=60m --confirm

  # Remove images over the limits of their projects
  oc adm prune images --prune-over-size-limit --confirm`,
		Args: cobra.NoArgs,
		Run: func(command *cobra.Command, _ []string) {
			util.CheckErr(p.connect(factory, command))
			util.CheckErr(p.run(command.Context(), time.Now))
		},
	}
	flags := command.Flags()
	flags.BoolVar(&p.confirm, "confirm", false, "Remove them.")
	flags.BoolVar(&p.keep.external, "all", true, "Remove also records of images of other registries, and what the cluster's registry kept of them.")
	flags.IntVar(&p.keep.revisions, "keep-tag-revisions", 3, "How many images of each tag's history are kept.")
	flags.DurationVar(&p.keep.younger, "keep-younger-than", time.Hour, "Keep images and image streams that are younger, and what ended pods younger than that used.")
	flags.BoolVar(&p.keep.overSize, "prune-over-size-limit", false, "Remove images that are larger than the limit range (openshift.io/Image) of their project allows.")
	flags.BoolVar(&p.pruneRegistry, "prune-registry", true, "Remove what the registry holds of the images. Otherwise it stays on the disk.")
	flags.BoolVar(&p.ignoreInvalids, "ignore-invalid-refs", false, "Pass over references to images that cannot be read, instead of removing nothing.")
	p.at.flags(flags)
	return command
}

func (p *pruning) connect(factory util.Factory, command *cobra.Command) error {
	if p.keep.revisions < 0 || p.keep.younger < 0 {
		return util.UsageErrorf(command, "--keep-tag-revisions and --keep-younger-than must not be negative")
	}
	if flags := command.Flags(); p.keep.overSize && (flags.Changed("keep-tag-revisions") || flags.Changed("keep-younger-than")) {
		return util.UsageErrorf(command, "--prune-over-size-limit goes with neither --keep-tag-revisions nor --keep-younger-than")
	}
	if flag := command.Flag("namespace"); flag != nil && flag.Changed {
		p.keep.namespace = flag.Value.String()
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
	address := addressOf(before.streams)
	found := p.keep.find(before, now())
	if !p.confirm {
		report.streams(found.streams)
		request := record.GarbageRequest{Images: inRegistry(found.images, before.streams), DryRun: true}
		if err := p.cleanRegistry(ctx, address, request, report); err != nil {
			fmt.Fprintf(p.ErrOut, "What would go from the registry is not shown: %v\n", err)
		}
		report.images(found.images)
		return nil
	}
	gone, err := p.remove(ctx, before, now, report)
	report.images(gone)
	request := record.GarbageRequest{Images: inRegistry(gone, before.streams)}
	return errors.Join(err, p.cleanRegistry(ctx, address, request, report))
}

// cleanRegistry asks the registry to remove what it has of images.
func (p *pruning) cleanRegistry(ctx context.Context, address string, request record.GarbageRequest, report *report) error {
	if !p.pruneRegistry || len(request.Images) == 0 {
		return nil
	}
	removed, err := p.registry(ctx, address, request)
	report.registry(removed)
	return err
}

// maxRounds is how often a prune begins anew because streams change under it.
const maxRounds = 5

// remove takes images out of streams, and then removes those that are still garbage. It returns the
// images that went.
func (p *pruning) remove(ctx context.Context, s state, now func() time.Time, report *report) (gone []imagev1.Image, err error) {
	for round := 0; ; round++ {
		found := p.keep.find(s, now())
		if len(found.streams) == 0 {
			return p.removeImages(ctx, found.images)
		}
		if round == maxRounds {
			// Streams change all the time: what they still name stays.
			return p.removeImages(ctx, found.settled(s))
		}
		for _, less := range found.streams {
			_, err := p.images.ImageStreams(less.stream.Namespace).UpdateStatus(ctx, less.stream, metav1.UpdateOptions{})
			if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
				continue // it has changed: the next round finds out what it refers to now
			}
			if err != nil {
				return nil, fmt.Errorf("update image stream %q: %w", less.stream.Namespace+"/"+less.stream.Name, err)
			}
			report.streams([]shorter{less})
		}
		// Again: something may have begun to use an image that has left the history.
		if s, err = p.read(ctx, now()); err != nil {
			return nil, err
		}
	}
}

func (p *pruning) removeImages(ctx context.Context, images []imagev1.Image) (gone []imagev1.Image, err error) {
	for _, image := range images {
		conditions := metav1.NewUIDPreconditions(string(image.UID))
		conditions.ResourceVersion = &image.ResourceVersion
		err := p.images.Images().Delete(ctx, image.Name, metav1.DeleteOptions{Preconditions: conditions})
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			continue // it has changed: something is about to use it
		}
		if err != nil {
			return gone, fmt.Errorf("remove image %q: %w", image.Name, err)
		}
		gone = append(gone, image)
	}
	return gone, nil
}

// read reads images before streams and streams before what uses them: what is made meanwhile is
// seen by the later.
func (p *pruning) read(ctx context.Context, now time.Time) (s state, err error) {
	images, err := p.images.Images().List(ctx, metav1.ListOptions{})
	if err != nil {
		return s, err
	}
	streams, err := p.images.ImageStreams(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return s, err
	}
	s = state{images: images.Items, streams: streams.Items, limits: map[string]int64{}}
	if s.used, err = findReferences(ctx, p.client, metav1.NamespaceAll, now.Add(-p.keep.younger)); err != nil {
		return s, err
	}
	if err := s.used.invalid(); err != nil && !p.ignoreInvalids {
		return s, err
	}
	if !p.keep.overSize {
		return s, nil
	}
	limits, err := objects.List[corev1.LimitRange](ctx, p.client, corev1.SchemeGroupVersion.WithResource("limitranges"), metav1.NamespaceAll, metav1.ListOptions{})
	for _, limit := range limits {
		for _, item := range limit.Spec.Limits {
			size, ok := item.Max[corev1.ResourceStorage]
			if smallest, known := s.limits[limit.Namespace]; ok && item.Type == imagev1.LimitTypeImage && (!known || size.Value() < smallest) {
				s.limits[limit.Namespace] = size.Value()
			}
		}
	}
	return s, err
}

// addressOf returns the host of the cluster's registry as streams name it, the one for other
// machines if there is one.
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
