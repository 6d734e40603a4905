package image

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/docker/go-units"
	imagev1 "github.com/openshift/api/image/v1"
	imageclient "github.com/openshift/client-go/image/clientset/versioned/typed/image/v1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/apigroup/image/record"
	"github.com/slipway-platform/slipway/apigroup/image/retention"
	"github.com/slipway-platform/slipway/cli/objects"
)

// NewTop returns the `oc adm top images` and `oc adm top imagestreams` commands.
func NewTop(factory util.Factory, streams genericiooptions.IOStreams) []*cobra.Command {
	command := func(use, short string, show func(ctx context.Context, images imageclient.ImageV1Interface, client dynamic.Interface, namespace string, out io.Writer) error) *cobra.Command {
		return &cobra.Command{
			Use: use, Short: short, Long: short + ", of all projects or of the project of --namespace.", Args: cobra.NoArgs,
			Run: func(command *cobra.Command, _ []string) {
				config, err := factory.ToRESTConfig()
				util.CheckErr(err)
				images, err := imageclient.NewForConfig(config)
				util.CheckErr(err)
				client, err := factory.DynamicClient()
				util.CheckErr(err)
				namespace := metav1.NamespaceAll
				if flag := command.Flag("namespace"); flag != nil && flag.Changed {
					namespace = flag.Value.String()
				}
				util.CheckErr(show(command.Context(), images, client, namespace, streams.Out))
			},
		}
	}
	return []*cobra.Command{
		command("images", "Show usage statistics of images", topImages),
		command("imagestreams", "Show usage statistics of image streams", topStreams),
	}
}

// topImages prints a table of all images, largest first.
func topImages(ctx context.Context, client imageclient.ImageV1Interface, using dynamic.Interface, namespace string, out io.Writer) error {
	images, err := client.Images().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	streams, err := client.ImageStreams(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	pods, err := objects.List[corev1.Pod](ctx, using, corev1.SchemeGroupVersion.WithResource("pods"), namespace, metav1.ListOptions{})
	if err != nil {
		return err
	}
	tags, current := map[string][]string{}, map[string]string{}
	for _, stream := range streams.Items {
		for _, tag := range stream.Status.Tags {
			name := stream.Namespace + "/" + stream.Name
			for _, event := range tag.Items {
				tags[event.Image] = append(tags[event.Image], fmt.Sprintf("%s (%s)", name, tag.Tag))
			}
			if len(tag.Items) > 0 {
				current[name+":"+tag.Tag] = tag.Items[0].Image
			}
		}
	}
	uses := usage(pods, current)
	all := slices.SortedFunc(slices.Values(images.Items), func(a, b imagev1.Image) int {
		return cmp.Or(cmp.Compare(retention.SizeOf(&b), retention.SizeOf(&a)), cmp.Compare(a.Name, b.Name))
	})
	table := tabwriter.NewWriter(out, 10, 4, 3, ' ', 0)
	fmt.Fprintln(table, "NAME\tIMAGESTREAMTAG\tPARENTS\tUSAGE\tMETADATA\tSTORAGE")
	for i := range all {
		image := &all[i]
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", image.Name, list(tags[image.Name]), list(parents(image, all)), list(uses[image.Name]),
			described(image), units.BytesSize(float64(retention.SizeOf(image))))
	}
	return table.Flush()
}

// usage returns the users of each image: the controllers of running and pending pods, or the pods
// themselves. current maps each tag to its current image.
func usage(pods []corev1.Pod, current map[string]string) map[string][]string {
	byImage := map[string][]string{}
	for i := range pods {
		pod := &pods[i]
		if pod.Status.Phase != corev1.PodRunning && pod.Status.Phase != corev1.PodPending {
			continue
		}
		refs := retention.NewReferences()
		refs.AddSpec(retention.Owner{}, pod.Namespace, &pod.Spec)
		for tag := range refs.Tags {
			if image, ok := current[tag]; ok {
				refs.Images[image] = nil
			}
		}
		kind, name := "Pod", pod.Name
		if owner := metav1.GetControllerOf(pod); owner != nil {
			kind, name = owner.Kind, owner.Name
		}
		for image := range refs.Images {
			byImage[image] = append(byImage[image], fmt.Sprintf("%s: %s/%s", kind, pod.Namespace, name))
		}
	}
	return byImage
}

// parents returns the short names of an image's parents. The layers of a parent are the first
// layers of the image.
func parents(image *imagev1.Image, all []imagev1.Image) (matches []string) {
	for i := range all {
		layers, its := image.DockerImageLayers, all[i].DockerImageLayers
		if len(its) == 0 || len(its) >= len(layers) {
			continue
		}
		if slices.EqualFunc(its, layers[:len(its)], func(a, b imagev1.ImageLayer) bool { return a.Name == b.Name }) {
			matches = append(matches, short(all[i].Name))
		}
	}
	return matches
}

// maxName is the maximum length of an image name in a list, in bytes.
const maxName = 20

// short truncates a name to maxName bytes.
func short(name string) string {
	if len(name) <= maxName {
		return name
	}
	return name[:maxName-3] + "..."
}

// described returns "yes" if the metadata of an image contains the image's size and layers, and
// "no" otherwise.
func described(image *imagev1.Image) string {
	metadata, err := record.Metadata(image)
	if err != nil || metadata.Size == 0 || len(image.DockerImageLayers) == 0 {
		return "no"
	}
	return "yes"
}

// list sorts strings, removes duplicates, and joins them. If there are no strings, it returns
// "<none>".
func list(texts []string) string {
	if len(texts) == 0 {
		return "<none>"
	}
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(texts))), ", ")
}

// topStreams prints a table of image streams, largest first.
func topStreams(ctx context.Context, client imageclient.ImageV1Interface, _ dynamic.Interface, namespace string, out io.Writer) error {
	images, err := client.Images().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	streams, err := client.ImageStreams(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	byName := map[string]*imagev1.Image{}
	for i := range images.Items {
		byName[images.Items[i].Name] = &images.Items[i]
	}
	var lines []streamContent
	for i := range streams.Items {
		lines = append(lines, holdingOf(&streams.Items[i], byName))
	}
	slices.SortFunc(lines, func(a, b streamContent) int {
		return cmp.Or(cmp.Compare(b.storage, a.storage), cmp.Compare(a.name, b.name))
	})
	table := tabwriter.NewWriter(out, 10, 4, 3, ' ', 0)
	fmt.Fprintln(table, "NAME\tSTORAGE\tIMAGES\tLAYERS")
	for _, streamContent := range lines {
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\n", streamContent.name, units.BytesSize(float64(streamContent.storage)), streamContent.images, streamContent.layers)
	}
	return table.Flush()
}

// streamContent is the content of an image stream. Layers and image configurations that several
// images share are included only once.
type streamContent struct {
	name           string
	storage        int64 // in bytes
	images, layers int
}

func holdingOf(stream *imagev1.ImageStream, byName map[string]*imagev1.Image) streamContent {
	layers, images := map[string]int64{}, map[string]int64{}
	for _, tag := range stream.Status.Tags {
		for _, event := range tag.Items {
			images[event.Image] = 0
			if image := byName[event.Image]; image != nil {
				images[event.Image] = int64(len(image.DockerImageConfig))
				for _, layer := range image.DockerImageLayers {
					layers[layer.Name] = layer.LayerSize
				}
			}
		}
	}
	existing := streamContent{name: stream.Namespace + "/" + stream.Name, images: len(images), layers: len(layers)}
	for _, sizes := range []map[string]int64{layers, images} {
		for _, size := range sizes {
			existing.storage += size
		}
	}
	return existing
}
