package image

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	imagev1 "github.com/openshift/api/image/v1"
	imageclient "github.com/openshift/client-go/image/clientset/versioned/typed/image/v1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/util/retry"
	"k8s.io/kubectl/pkg/cmd/util"
)

// tagger holds the state of `oc tag`.
type tagger struct {
	client    imageclient.ImageV1Interface
	namespace string
	out       io.Writer

	source                                        string // kind of the source, or "" to detect it
	alias, remove, insecure, reference, scheduled bool
	policy                                        string
}

// NewTag returns the `oc tag` command.
func NewTag(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	t := &tagger{out: streams.Out}
	command := &cobra.Command{
		Use:   "tag [--source=KIND] SOURCE DESTINATION... | tag -d TAG...",
		Short: "Tag existing images into image streams",
		Long: `Set tags of image streams to images.

SOURCE is a tag of an image stream (STREAM:TAG or PROJECT/STREAM:TAG), an image of a stream
(STREAM@ID) or an image in a registry. The new tag gets the current image of a source tag.
With --alias, it follows the source tag.`,
		Example: `  oc tag openshift/ruby:2.5 yourproject/ruby:tip
  oc tag registry.example.com/team/app:v1 app:v1 --scheduled
  oc tag -d app:v1`,
		Run: func(command *cobra.Command, args []string) {
			if len(args) < 1 || len(args) < 2 && !t.remove {
				util.CheckErr(util.UsageErrorf(command, "specify a source and at least one tag, or with -d the tags to remove"))
			}
			util.CheckErr(t.complete(factory))
			util.CheckErr(t.run(command.Context(), args))
		},
	}
	flags := command.Flags()
	flags.StringVar(&t.source, "source", "", "Kind of the source: imagestreamtag (istag), imagestreamimage (isimage) or docker")
	flags.BoolVar(&t.alias, "alias", false, "Follow the source tag, which must be in the same image stream and may not exist yet")
	flags.BoolVarP(&t.remove, "delete", "d", false, "Remove the tags")
	flags.BoolVar(&t.insecure, "insecure", false, "Accept any certificate of the source's registry, and plain HTTP")
	flags.BoolVar(&t.reference, "reference", false, "Refer to the source without importing it")
	flags.BoolVar(&t.scheduled, "scheduled", false, "Import the source periodically")
	flags.StringVar(&t.policy, "reference-policy", "source", "Registry from which pods pull the image: source, or local (the cluster's)")
	return command
}

func (t *tagger) complete(factory util.Factory) error {
	config, err := factory.ToRESTConfig()
	if err != nil {
		return err
	}
	if t.client, err = imageclient.NewForConfig(config); err != nil {
		return err
	}
	t.namespace, _, err = factory.ToRawKubeConfigLoader().Namespace()
	return err
}

func (t *tagger) run(ctx context.Context, args []string) error {
	if t.remove {
		return t.removeAll(ctx, args)
	}
	return t.tagAll(ctx, args[0], args[1:])
}

// qualified splits PROJECT/STREAM:TAG into the project and STREAM:TAG. The default project is the
// current project.
func (t *tagger) qualified(text string) (namespace, name string) {
	if namespace, name, ok := strings.Cut(text, "/"); ok {
		return namespace, name
	}
	return t.namespace, text
}

func (t *tagger) removeAll(ctx context.Context, tags []string) error {
	for _, text := range tags {
		namespace, name := t.qualified(text)
		if !strings.Contains(name, ":") {
			return fmt.Errorf("%q is not a tag: use STREAM:TAG", text)
		}
		if err := t.client.ImageStreamTags(namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return err
		}
		fmt.Fprintf(t.out, "Deleted tag %s/%s.\n", namespace, name)
	}
	return nil
}

func (t *tagger) tagAll(ctx context.Context, source string, destinations []string) error {
	from, err := t.find(ctx, source)
	if err != nil {
		return err
	}
	if t.scheduled && from.Kind != "DockerImage" {
		return fmt.Errorf("--scheduled works only with an image in a registry, but %q is an %s", source, from.Kind)
	}
	for _, destination := range destinations {
		namespace, name := t.qualified(destination)
		stream, tag, ok := strings.Cut(name, ":")
		if !ok {
			tag = "latest"
		}
		if t.alias && !within(from, namespace, stream) {
			return fmt.Errorf("cannot set alias across different image streams: tag %q cannot follow %q", destination, source)
		}
		if err := t.set(ctx, namespace, stream, tag, *from); err != nil {
			return err
		}
		fmt.Fprintln(t.out, t.done(stream+":"+tag, from))
	}
	return nil
}

// within reports whether a source is in an image stream. As in OpenShift 3.11, this includes an
// image in a registry if its repository has the same name as the stream.
func within(from *corev1.ObjectReference, namespace, stream string) bool {
	end := strings.IndexAny(from.Name, ":@")
	return end >= 0 && from.Name[:end] == stream && (from.Kind == "DockerImage" || from.Namespace == namespace)
}

// done returns a message that describes the result, in OpenShift 3's wording.
func (t *tagger) done(tag string, from *corev1.ObjectReference) string {
	switch {
	case t.scheduled:
		return fmt.Sprintf("Tag %s set to import %s periodically.", tag, from.Name)
	case t.alias:
		return fmt.Sprintf("Tag %s set up to track %s.", tag, from.Name)
	}
	return fmt.Sprintf("Tag %s set to %s.", tag, from.Name)
}

// find returns the source. If the source is an image stream tag, find returns the tag's current
// image, unless the new tag must follow the source.
func (t *tagger) find(ctx context.Context, source string) (*corev1.ObjectReference, error) {
	namespace, name := t.qualified(source)
	image := &corev1.ObjectReference{Kind: "DockerImage", Name: source}
	switch strings.ToLower(t.source) {
	case "docker", "dockerimage":
		return image, nil
	case "isimage", "imagestreamimage":
		return &corev1.ObjectReference{Kind: "ImageStreamImage", Namespace: namespace, Name: name}, nil
	case "istag", "imagestreamtag", "":
	default:
		return nil, fmt.Errorf("--source %q must be imagestreamtag, imagestreamimage or docker", t.source)
	}
	if t.source == "" && strings.Contains(name, "/") { // the name refers to an image in a registry
		return image, nil
	}
	if strings.Contains(name, "@") {
		existing, err := t.client.ImageStreamImages(namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			return &corev1.ObjectReference{Kind: "ImageStreamImage", Namespace: namespace, Name: existing.Name}, nil
		}
		return t.externalImage(image, err)
	}
	if !strings.Contains(name, ":") {
		name += ":latest"
	}
	tag, err := t.client.ImageStreamTags(namespace).Get(ctx, name, metav1.GetOptions{})
	stream, version, _ := strings.Cut(name, ":")
	if apierrors.IsNotFound(err) && (t.alias || t.names(ctx, namespace, stream, version)) {
		return &corev1.ObjectReference{Kind: "ImageStreamTag", Namespace: namespace, Name: name}, nil
	}
	if err != nil {
		return t.externalImage(image, err)
	}
	if t.alias || tag.Image.Name == "" {
		return &corev1.ObjectReference{Kind: "ImageStreamTag", Namespace: namespace, Name: name}, nil
	}
	return &corev1.ObjectReference{Kind: "ImageStreamImage", Namespace: namespace, Name: stream + "@" + tag.Image.Name}, nil
}

// names reports whether an image stream's spec contains a tag. The tag does not have to have an
// image.
func (t *tagger) names(ctx context.Context, namespace, stream, tag string) bool {
	existing, err := t.client.ImageStreams(namespace).Get(ctx, stream, metav1.GetOptions{})
	return err == nil && slices.ContainsFunc(existing.Spec.Tags, func(t imagev1.TagReference) bool { return t.Name == tag })
}

// externalImage returns the image in a registry if the source does not exist in the cluster. If
// --source or --alias is set, it returns err instead.
func (t *tagger) externalImage(image *corev1.ObjectReference, err error) (*corev1.ObjectReference, error) {
	if t.source == "" && !t.alias && (apierrors.IsNotFound(err) || apierrors.IsForbidden(err)) {
		return image, nil
	}
	return nil, err
}

func (t *tagger) set(ctx context.Context, namespace, stream, tag string, from corev1.ObjectReference) error {
	if from.Kind == "DockerImage" {
		from.Namespace = ""
	}
	desired := &imagev1.ImageStreamTag{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: stream + ":" + tag},
		Tag: &imagev1.TagReference{
			Name: tag, From: &from, Reference: t.reference,
			ImportPolicy: imagev1.TagImportPolicy{Insecure: t.insecure, Scheduled: t.scheduled},
		},
	}
	switch strings.ToLower(t.policy) {
	case "local":
		desired.Tag.ReferencePolicy.Type = imagev1.LocalTagReferencePolicy
	case "source", "":
		desired.Tag.ReferencePolicy.Type = imagev1.SourceTagReferencePolicy
	default:
		return fmt.Errorf("--reference-policy %q must be source or local", t.policy)
	}
	tags := t.client.ImageStreamTags(namespace)
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		_, err := tags.Update(ctx, desired, metav1.UpdateOptions{})
		if apierrors.IsNotFound(err) {
			_, err = tags.Create(ctx, desired, metav1.CreateOptions{})
		}
		return err
	})
}
