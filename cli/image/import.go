package image

import (
	"context"
	"errors"
	"fmt"
	"strings"

	imagev1 "github.com/openshift/api/image/v1"
	imageclient "github.com/openshift/client-go/image/clientset/versioned/typed/image/v1"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/cli/describe"
)

// imageImport holds the state of `oc import-image`.
type imageImport struct {
	genericiooptions.IOStreams
	client    imageclient.ImageV1Interface
	namespace string

	from, mode, policy                        string
	confirm, all, insecure, scheduled, dryRun bool
}

// NewImport returns the `oc import-image` command.
func NewImport(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	i := &imageImport{IOStreams: streams}
	command := &cobra.Command{
		Use:   "import-image STREAM[:TAG]",
		Short: "Import images from a registry into an image stream",
		Long: `Import the image of a tag again from its registry. The default tag is latest. With --all, import all tags of the stream's repository, or
the tags of the stream that refer to images.

With --confirm, the command creates the stream or its tag. Then the argument can also be an image of a registry, and the stream has its name.`,
		Example: `  # Import the current image of the tag latest
  oc import-image ruby

  # Create a stream for an image
  oc import-image registry.example.com/team/ruby:2.5 --confirm
  oc import-image ruby:2.5 --from=registry.example.com/team/ruby:2.5 --confirm

  # Import all tags of a repository
  oc import-image ruby --from=registry.example.com/team/ruby --all --confirm

  # Print the images without importing them
  oc import-image ruby --dry-run`,
		Run: func(command *cobra.Command, args []string) {
			if len(args) != 1 {
				util.CheckErr(util.UsageErrorf(command, "specify one image stream"))
			}
			config, err := factory.ToRESTConfig()
			util.CheckErr(err)
			i.client, err = imageclient.NewForConfig(config)
			util.CheckErr(err)
			i.namespace, _, err = factory.ToRawKubeConfigLoader().Namespace()
			util.CheckErr(err)
			util.CheckErr(i.run(command.Context(), args[0]))
		},
	}
	flags := command.Flags()
	flags.StringVar(&i.from, "from", "", "Image or repository to import from, instead of the current source of the tag")
	flags.BoolVar(&i.confirm, "confirm", false, "Create the image stream, or change the source of the tag")
	flags.BoolVar(&i.all, "all", false, "Import all tags of the repository")
	flags.BoolVar(&i.dryRun, "dry-run", false, "Print the images in the registry without importing them")
	flags.BoolVar(&i.insecure, "insecure", false, "Accept any certificate of the registry, and plain HTTP")
	flags.BoolVar(&i.scheduled, "scheduled", false, "Import periodically")
	flags.StringVar(&i.mode, "import-mode", "Legacy", "How to import an index: Legacy imports one of its images, PreserveOriginal imports all of them")
	flags.StringVar(&i.policy, "reference-policy", "source", "Registry from which pods pull the images: source, or local (the cluster's)")
	return command
}

// target splits STREAM[:TAG]. If text is the name of an image in a registry, the stream is named
// after the image. The default tag is latest.
func (i *imageImport) target(text string) (name, tag string, err error) {
	name = text[strings.LastIndex(text, "/")+1:]
	name, tag, ok := strings.Cut(name, ":")
	switch {
	case strings.Contains(text, "@"):
		return "", "", errors.New("to import an image by its digest, use oc tag")
	case name == "" || ok && tag == "":
		return "", "", fmt.Errorf("%q is not the name of an image stream, such as ruby or ruby:2.5", text)
	case ok && i.all:
		return "", "", fmt.Errorf("use either the tag %q or --all", tag)
	case !ok && !i.all:
		tag = "latest"
	}
	return name, tag, nil
}

func (i *imageImport) run(ctx context.Context, text string) error {
	name, tag, err := i.target(text)
	if err != nil {
		return err
	}
	stream, err := i.client.ImageStreams(i.namespace).Get(ctx, name, metav1.GetOptions{})
	var request *imagev1.ImageStreamImport
	switch {
	case apierrors.IsNotFound(err) && !i.confirm:
		return fmt.Errorf("no image stream named %q exists, pass --confirm to create and import", name)
	case apierrors.IsNotFound(err):
		if i.from == "" {
			i.from = text
		}
		request, err = i.request(&imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{Namespace: i.namespace, Name: name}}, tag)
	case err == nil:
		request, err = i.request(stream, tag)
	}
	if err != nil {
		return err
	}
	request.Spec.Import = !i.dryRun
	response, err := i.client.ImageStreamImports(i.namespace).Create(ctx, request, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return i.report(ctx, name, response)
}

// report prints the results for the image stream and for each tag. It returns an error if any tag
// could not be imported.
func (i *imageImport) report(ctx context.Context, name string, response *imagev1.ImageStreamImport) error {
	statuses := response.Status.Images
	if repository := response.Status.Repository; repository != nil {
		if repository.Status.Status == metav1.StatusFailure {
			return fmt.Errorf("import repository: %s", repository.Status.Message)
		}
		statuses = append(statuses, repository.Images...)
	}
	var failed []string
	for _, status := range statuses {
		if status.Image == nil {
			failed = append(failed, fmt.Sprintf("error: tag %s failed: %s\n", status.Tag, status.Status.Message))
		}
	}
	fmt.Fprintf(i.Out, "imagestream.image.openshift.io/%s imported%s%s\n\n", name,
		map[bool]string{true: " with errors"}[len(failed) > 0], map[bool]string{true: " (dry run)"}[i.dryRun])
	if response.Status.Import != nil {
		if err := i.describe(ctx, response.Status.Import, "ImageStream"); err != nil {
			return err
		}
	}
	for _, status := range statuses {
		if status.Image == nil {
			continue
		}
		tag := &imagev1.ImageStreamTag{ObjectMeta: metav1.ObjectMeta{Name: name + ":" + status.Tag}, Image: *status.Image}
		if err := i.describe(ctx, tag, "ImageStreamTag"); err != nil {
			return err
		}
	}
	if repository := response.Status.Repository; repository != nil && len(repository.AdditionalTags) > 0 {
		fmt.Fprintf(i.Out, "info: the repository has %d more tags, which were not imported: %s\n", len(repository.AdditionalTags), strings.Join(repository.AdditionalTags, ", "))
	}
	if len(failed) == 0 {
		return nil
	}
	fmt.Fprint(i.ErrOut, strings.Join(failed, ""))
	return fmt.Errorf("%d of %d tags of image stream %q were not imported", len(failed), len(statuses), name)
}

func (i *imageImport) describe(ctx context.Context, object interface {
	runtime.Object
	SetGroupVersionKind(schema.GroupVersionKind)
}, kind string) error {
	object.SetGroupVersionKind(imagev1.GroupVersion.WithKind(kind))
	text, err := describe.Object(ctx, nil, "", object)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(i.Out, text)
	return err
}
