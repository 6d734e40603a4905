package image

import (
	"context"
	"fmt"
	"time"

	imagev1 "github.com/openshift/api/image/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/util/retry"

	"github.com/slipway-platform/slipway/apigroup/image/record"
)

// mappings is what a registry sends for each image that was pushed: the image is made if there is none,
// and becomes the newest of a tag.
type mappings struct {
	view
	options    Options
	authorizer authorizer.Authorizer
	limits     limits
}

var (
	_ rest.Creater              = &mappings{}
	_ rest.SingularNameProvider = &mappings{}
)

// New makes an empty object.
func (*mappings) New() runtime.Object { return &imagev1.ImageStreamMapping{} }

// GetSingularName is the name of one.
func (*mappings) GetSingularName() string { return "imagestreammapping" }

// Create stores the image and tags it into the stream, which must exist. A dry run without a tag says whether the project may have an image that no stream
// is to know: one that is pushed by its digest.
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
	image := m.believed(ctx, &mapping.Image)
	image.Namespace = ""
	tag := mapping.Tag
	if tag == "" && len(options.DryRun) > 0 {
		return &metav1.Status{Status: metav1.StatusSuccess}, m.limits.checkImage(mapping.Namespace, image)
	}
	if tag == "" {
		tag = "latest"
	}
	stream, err := m.stream(ctx, mapping.Name)
	if err != nil {
		return nil, err
	}
	if err := m.checkLimits(stream, tag, image); err != nil {
		return nil, err
	}
	if _, err := m.images.Create(request.WithNamespace(ctx, ""), image, rest.ValidateAllObjectFunc, options); err != nil && !errors.IsAlreadyExists(err) {
		return nil, err
	}
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		stream, err := m.stream(ctx, mapping.Name)
		if err != nil {
			return err
		}
		return m.tagInto(ctx, stream.DeepCopy(), tag, mapping, &metav1.UpdateOptions{DryRun: options.DryRun})
	})
	if err == nil && len(options.DryRun) == 0 {
		err = m.hold(ctx, image, options)
	}
	if err != nil {
		return nil, err
	}
	return &metav1.Status{Status: metav1.StatusSuccess}, nil
}

// tagged on an image is when it was last mapped into a stream.
const tagged = "slipway.openshift.io/tagged"

// hold keeps the record of an image that has just been tagged from a prune that has read the streams before that: it removes records as it has read them, and
// this one is another now. One that is gone already is stored again.
func (m *mappings) hold(ctx context.Context, image *imagev1.Image, options *metav1.CreateOptions) error {
	ctx = request.WithNamespace(ctx, "")
	now := func(_ context.Context, _, stored runtime.Object) (runtime.Object, error) {
		next := stored.DeepCopyObject().(*imagev1.Image)
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, tagged, time.Now().UTC().Format(time.RFC3339Nano))
		return next, nil
	}
	_, _, err := m.images.Update(ctx, image.Name, rest.DefaultUpdatedObjectInfo(nil, now), nil, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if !errors.IsNotFound(err) {
		return err
	}
	made := image.DeepCopy()
	made.UID, made.ResourceVersion, made.CreationTimestamp = "", "", metav1.Time{}
	if _, err = m.images.Create(ctx, made, rest.ValidateAllObjectFunc, options); errors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// checkLimits refuses an image before it is stored that the project may not have, or with which the stream would have too many.
func (m *mappings) checkLimits(stream *imagev1.ImageStream, tag string, image *imagev1.Image) error {
	if err := m.limits.checkImage(stream.Namespace, image); err != nil {
		return err
	}
	planned := stream.DeepCopy()
	addEvent(planned, tag, imagev1.TagEvent{Image: image.Name, DockerImageReference: image.DockerImageReference})
	if problems := m.limits.checkStream(planned, stream); len(problems) > 0 {
		return errors.NewForbidden(imagev1.Resource("imagestreams"), stream.Name, problems.ToAggregate())
	}
	return nil
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

// believed is what is stored of an image: all of it if the registry tells, or another user who may write images, else what can be proved.
func (m *mappings) believed(ctx context.Context, claimed *imagev1.Image) *imagev1.Image {
	user, _ := request.UserFrom(ctx)
	for _, verb := range []string{"create", "update"} {
		decision, _, err := m.authorizer.Authorize(ctx, authorizer.AttributesRecord{
			User: user, Verb: verb, APIGroup: imagev1.GroupName, APIVersion: "v1", Resource: "images", ResourceRequest: true,
		})
		if err == nil && decision == authorizer.DecisionAllow {
			return claimed.DeepCopy()
		}
	}
	return proven(claimed)
}

// proven is an image with no more than its place and what its manifest and configuration say, which the image's name proves. Labels, annotations,
// signatures and metadata decide whether an image may run: they are not for everyone to claim.
func proven(claimed *imagev1.Image) *imagev1.Image {
	content := record.Content{MediaType: claimed.DockerImageManifestMediaType, Manifest: []byte(claimed.DockerImageManifest)}
	config := []byte(claimed.DockerImageConfig)
	if digest, err := record.ConfigDigest(content.Manifest); err == nil && digest == record.Digest(config) {
		content.Config = config
	}
	image, err := record.Of(content)
	if err != nil {
		image = &imagev1.Image{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
	}
	image.Name, image.DockerImageReference = claimed.Name, claimed.DockerImageReference
	for _, kept := range []string{record.Managed, record.ManifestStored, record.LayersOrder} {
		if value, found := claimed.Annotations[kept]; found {
			image.Annotations[kept] = value
		}
	}
	return image
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
	if manifest := []byte(mapping.Image.DockerImageManifest); len(manifest) > 0 && record.Digest(manifest) != mapping.Image.Name {
		problems = append(problems, field.Invalid(field.NewPath("image", "metadata", "name"), mapping.Image.Name,
			fmt.Sprintf("the manifest is that of %q", record.Digest(manifest))))
	}
	return append(problems, validateContent(&mapping.Image, field.NewPath("image"))...)
}
