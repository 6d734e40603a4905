package image

import (
	"context"

	imagev1 "github.com/openshift/api/image/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/util/retry"

	"github.com/slipway-platform/slipway/apigroup/image/record"
)

// mappings is what a registry sends for each image that was pushed: the image is made if there is none,
// and becomes the newest of a tag.
type mappings struct {
	view
	options Options
}

var (
	_ rest.Creater              = &mappings{}
	_ rest.SingularNameProvider = &mappings{}
)

// New makes an empty object.
func (*mappings) New() runtime.Object { return &imagev1.ImageStreamMapping{} }

// GetSingularName is the name of one.
func (*mappings) GetSingularName() string { return "imagestreammapping" }

// Create stores the image and tags it into the stream, which must exist.
func (m *mappings) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	mapping := object.(*imagev1.ImageStreamMapping)
	if problems := validateMapping(mapping); len(problems) > 0 {
		return nil, errors.NewInvalid(imagev1.GroupVersion.WithKind("ImageStreamMapping").GroupKind(), mapping.Name, problems)
	}
	mapping.Namespace = request.NamespaceValue(ctx)
	if problems := m.options.checkPlace(mapping); len(problems) > 0 {
		return nil, errors.NewInvalid(imagev1.GroupVersion.WithKind("ImageStreamMapping").GroupKind(), mapping.Name, problems)
	}
	if err := validate(ctx, mapping); err != nil {
		return nil, err
	}
	if _, err := m.stream(ctx, mapping.Name); err != nil {
		return nil, err
	}
	clusterwide := request.WithNamespace(ctx, "")
	image := mapping.Image.DeepCopy()
	image.Namespace = ""
	if _, err := m.images.Create(clusterwide, image, rest.ValidateAllObjectFunc, options); err != nil && !errors.IsAlreadyExists(err) {
		return nil, err
	}
	tag := mapping.Tag
	if tag == "" {
		tag = "latest"
	}
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		stream, err := m.stream(ctx, mapping.Name)
		if err != nil {
			return err
		}
		return m.tagInto(ctx, stream.DeepCopy(), tag, mapping, &metav1.UpdateOptions{DryRun: options.DryRun})
	})
	if err != nil {
		return nil, err
	}
	return &metav1.Status{Status: metav1.StatusSuccess}, nil
}

// tagInto makes the image the newest of a tag; the history is kept whatever the tag is pointed at.
func (m *mappings) tagInto(ctx context.Context, stream *imagev1.ImageStream, tag string, mapping *imagev1.ImageStreamMapping, options *metav1.UpdateOptions) error {
	event := imagev1.TagEvent{
		Created: metav1.Now(), Image: mapping.Image.Name, DockerImageReference: mapping.Image.DockerImageReference, Generation: stream.Generation,
	}
	if !addEvent(stream, tag, event) {
		return nil
	}
	followers(stream, tag, event, map[string]bool{})
	return replace(ctx, m.status, stream, options)
}

// checkPlace keeps mappings from naming images of other projects in the cluster's registry, which would serve them to whoever may pull from this one.
func (o Options) checkPlace(mapping *imagev1.ImageStreamMapping) field.ErrorList {
	parsed, err := record.ParseReference(mapping.Image.DockerImageReference)
	if err != nil || !o.integrated(parsed.Registry) || parsed.Repository == mapping.Namespace+"/"+mapping.Name {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("image", "dockerImageReference"),
		"an image of the cluster's registry can only be mapped into its own image stream: point a tag at it")}
}

func validateMapping(mapping *imagev1.ImageStreamMapping) (problems field.ErrorList) {
	if mapping.Name == "" {
		problems = append(problems, field.Required(field.NewPath("metadata", "name"), "name the image stream"))
	}
	if mapping.Tag != "" {
		problems = append(problems, validateTagName(mapping.Tag, field.NewPath("tag"))...)
	}
	for _, reason := range validImageName(mapping.Image.Name, false) {
		problems = append(problems, field.Invalid(field.NewPath("image", "metadata", "name"), mapping.Image.Name, reason))
	}
	return append(problems, validateContent(&mapping.Image, field.NewPath("image"))...)
}
