package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	imagev1 "github.com/openshift/api/image/v1"
	imageclient "github.com/openshift/client-go/image/clientset/versioned/typed/image/v1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
)

// imageImport imports images into a stream.
type imageImport struct {
	client    imageclient.ImageV1Interface
	namespace string
	out       io.Writer

	from, mode, policy                string
	confirm, all, insecure, scheduled bool
}

// newImportImage makes `oc import-image`.
func newImportImage(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	i := &imageImport{out: streams.Out}
	command := &cobra.Command{
		Use:   "import-image STREAM[:TAG]",
		Short: "Import images from a registry into an image stream",
		Long:  "Reads what a tag of an image stream is pointed at from its registry again. Without TAG, all tags of the stream that are imported.",
		Example: `  oc import-image ruby
  oc import-image ruby:2.5 --from=registry.example.com/team/ruby:2.5 --confirm
  oc import-image ruby --from=registry.example.com/team/ruby --all --confirm`,
		Run: func(command *cobra.Command, args []string) {
			if len(args) != 1 {
				util.CheckErr(util.UsageErrorf(command, "name one image stream"))
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
	flags.StringVar(&i.from, "from", "", "An image or a repository to import from instead of what the tag is pointed at")
	flags.BoolVar(&i.confirm, "confirm", false, "Make the image stream, or point its tag elsewhere")
	flags.BoolVar(&i.all, "all", false, "Import all tags of the repository")
	flags.BoolVar(&i.insecure, "insecure", false, "Accept every certificate of the registry, and HTTP")
	flags.BoolVar(&i.scheduled, "scheduled", false, "Import periodically")
	flags.StringVar(&i.mode, "import-mode", "Legacy", "What becomes of an index: Legacy takes one image of it, PreserveOriginal all")
	flags.StringVar(&i.policy, "reference-policy", "source", "Where the images are pulled from: source or local, the cluster's registry")
	return command
}

func (i *imageImport) run(ctx context.Context, target string) error {
	name, tag, _ := strings.Cut(target, ":")
	stream, err := i.client.ImageStreams(i.namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if !i.confirm {
			return fmt.Errorf("no image stream named %q exists, pass --confirm to create and import", name)
		}
		stream = &imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{Namespace: i.namespace, Name: name}}
	} else if err != nil {
		return err
	}
	request, err := i.request(stream, tag)
	if err != nil {
		return err
	}
	answer, err := i.client.ImageStreamImports(i.namespace).Create(ctx, request, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return i.report(name, answer)
}

// request says what to import.
func (i *imageImport) request(stream *imagev1.ImageStream, tag string) (*imagev1.ImageStreamImport, error) {
	request := &imagev1.ImageStreamImport{
		ObjectMeta: metav1.ObjectMeta{Namespace: i.namespace, Name: stream.Name}, Spec: imagev1.ImageStreamImportSpec{Import: true},
	}
	policy := imagev1.TagImportPolicy{Insecure: i.insecure, Scheduled: i.scheduled, ImportMode: imagev1.ImportModeType(i.mode)}
	reference := imagev1.TagReferencePolicy{Type: imagev1.SourceTagReferencePolicy}
	if strings.EqualFold(i.policy, "local") {
		reference.Type = imagev1.LocalTagReferencePolicy
	}
	if i.all {
		from := i.from
		if from == "" {
			from = stream.Spec.DockerImageRepository
		}
		if from == "" || tag != "" {
			return nil, fmt.Errorf("--all needs a repository, by --from or in the image stream, and no tag")
		}
		request.Spec.Repository = &imagev1.RepositoryImportSpec{
			From: corev1.ObjectReference{Kind: "DockerImage", Name: from}, ImportPolicy: policy, ReferencePolicy: reference,
		}
		return request, nil
	}
	if i.from == "" && !i.known(stream, tag) {
		i.from = i.namesake(stream, tag)
	}
	if i.from != "" {
		if tag == "" {
			tag = "latest"
		}
		if old := pointedAt(stream, tag); old != "" && old != i.from && !i.confirm {
			return nil, fmt.Errorf("tag %q is pointed at %q: pass --confirm to import from %q instead", tag, old, i.from)
		}
		request.Spec.Images = []imagev1.ImageImportSpec{{
			From: corev1.ObjectReference{Kind: "DockerImage", Name: i.from}, To: &corev1.LocalObjectReference{Name: tag},
			ImportPolicy: policy, ReferencePolicy: reference,
		}}
		return request, nil
	}
	for _, existing := range stream.Spec.Tags {
		if tag != "" && existing.Name != tag || pointedAt(stream, existing.Name) == "" {
			continue
		}
		existing.ImportPolicy.Insecure = existing.ImportPolicy.Insecure || i.insecure
		existing.ImportPolicy.Scheduled = existing.ImportPolicy.Scheduled || i.scheduled
		request.Spec.Images = append(request.Spec.Images, imagev1.ImageImportSpec{
			From: *existing.From, To: &corev1.LocalObjectReference{Name: existing.Name},
			ImportPolicy: existing.ImportPolicy, ReferencePolicy: existing.ReferencePolicy,
		})
	}
	return request, nil
}

// known says whether the stream has a tag to import, the given one or any.
func (i *imageImport) known(stream *imagev1.ImageStream, tag string) bool {
	for _, existing := range stream.Spec.Tags {
		if (tag == "" || existing.Name == tag) && pointedAt(stream, existing.Name) != "" {
			return true
		}
	}
	return false
}

// namesake is the image of the stream's repository, or the one that is called like the stream.
func (i *imageImport) namesake(stream *imagev1.ImageStream, tag string) string {
	from := stream.Spec.DockerImageRepository
	if from == "" {
		from = stream.Name
	}
	if tag != "" {
		from += ":" + tag
	}
	return from
}

// pointedAt is the image of a registry that a tag is pointed at, or "".
func pointedAt(stream *imagev1.ImageStream, tag string) string {
	for _, existing := range stream.Spec.Tags {
		if existing.Name == tag && existing.From != nil && existing.From.Kind == "DockerImage" {
			return existing.From.Name
		}
	}
	return ""
}

// report prints what became of each tag. One that was not imported is an error.
func (i *imageImport) report(name string, answer *imagev1.ImageStreamImport) error {
	statuses := answer.Status.Images
	if repository := answer.Status.Repository; repository != nil {
		if repository.Status.Status == metav1.StatusFailure {
			return fmt.Errorf("import repository: %s", repository.Status.Message)
		}
		statuses = append(statuses, repository.Images...)
	}
	failed := 0
	for _, status := range statuses {
		if status.Image == nil {
			failed++
			fmt.Fprintf(i.out, "%s:%s  not imported: %s\n", name, status.Tag, status.Status.Message)
			continue
		}
		fmt.Fprintf(i.out, "%s:%s  %s\n", name, status.Tag, status.Image.DockerImageReference)
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d tags of image stream %q were not imported", failed, len(statuses), name)
	}
	fmt.Fprintf(i.out, "imagestream.image.openshift.io/%s imported\n", name)
	return nil
}
