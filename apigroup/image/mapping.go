package image

import (
	"context"
	"fmt"
	"strings"
	"time"

	imagev1 "github.com/openshift/api/image/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/util/retry"

	"github.com/slipway-platform/slipway/apigroup/image/pull"
	"github.com/slipway-platform/slipway/apigroup/image/record"
)

// mappings receives a mapping from the registry for each pushed image. It stores the record of a
// new image, and adds the image to a tag as the tag's newest image.
//
// Users can also send mappings. From a user's mapping, it stores only content that the manifest
// proves. A mapping without a manifest sets only the tag's pull spec, unless the user can read the
// image in another stream.
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

// New implements rest.Storage.
func (*mappings) New() runtime.Object { return &imagev1.ImageStreamMapping{} }

// GetSingularName implements rest.SingularNameProvider.
func (*mappings) GetSingularName() string { return "imagestreammapping" }

// Create stores the image and tags it into the stream, which must exist. A dry run without a tag
// checks only whether the project's limits allow an image that is pushed by digest.
func (m *mappings) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	mapping := object.(*imagev1.ImageStreamMapping)
	mapping.Namespace = request.NamespaceValue(ctx)
	m.options.setPlace(mapping)
	problems := validateMapping(mapping)
	if len(problems) == 0 {
		problems = m.options.checkPlace(mapping)
	}
	if len(problems) > 0 {
		return nil, apierrors.NewInvalid(imagev1.GroupVersion.WithKind("ImageStreamMapping").GroupKind(), mapping.Name, problems)
	}
	if err := validate(ctx, mapping); err != nil {
		return nil, err
	}
	image, err := m.recordOf(ctx, mapping)
	if err != nil {
		return nil, err
	}
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
	event := imagev1.TagEvent{Image: image.Name, DockerImageReference: mapping.Image.DockerImageReference}
	if err := m.checkLimits(stream, tag, image, event); err != nil {
		return nil, err
	}
	if image.Name != "" {
		if err := m.keep(ctx, image, options.DryRun); err != nil {
			return nil, err
		}
	}
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		stream, err := m.stream(ctx, mapping.Name)
		if err != nil {
			return err
		}
		return m.tagInto(ctx, stream.DeepCopy(), tag, event, &metav1.UpdateOptions{DryRun: options.DryRun})
	})
	if err == nil && image.Name != "" && len(options.DryRun) == 0 {
		err = m.hold(ctx, image, options)
	}
	if err != nil {
		return nil, err
	}
	return &metav1.Status{Status: metav1.StatusSuccess}, nil
}

// recordOf returns the record to store. The registry, and users who can write images, can set all
// fields. For other users, the manifest must prove the content, or the user must be able to read
// the stored record. Otherwise, the record has no name, and the tag receives only the pull spec.
//
// A Docker schema 1 manifest does not prove any content that Slipway reads. Therefore, only users
// who can write images can map a schema 1 manifest.
func (m *mappings) recordOf(ctx context.Context, mapping *imagev1.ImageStreamMapping) (*imagev1.Image, error) {
	claimed := &mapping.Image
	trusts := m.writesImages(ctx)
	var image *imagev1.Image
	if manifest := []byte(claimed.DockerImageManifest); len(manifest) > 0 && !(trusts && record.IsSchema1(manifest)) {
		var err error
		if image, err = verify(claimed); err != nil {
			problem := field.Invalid(field.NewPath("image", "dockerImageManifest"), "<manifest>", err.Error())
			return nil, apierrors.NewInvalid(imagev1.GroupVersion.WithKind("ImageStreamMapping").GroupKind(), mapping.Name, field.ErrorList{problem})
		}
	}
	switch {
	case trusts:
		trusted := claimed.DeepCopy()
		trusted.Namespace = ""
		if image != nil {
			copyContent(trusted, image)
		}
		return trusted, nil
	case image != nil:
		return image, nil
	}
	object, err := m.images.Get(request.WithNamespace(ctx, ""), claimed.Name, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return &imagev1.Image{DockerImageReference: claimed.DockerImageReference}, nil
	}
	if err != nil {
		return nil, err
	}
	image = object.(*imagev1.Image).DeepCopy()
	if may, err := m.mayRead(ctx, mapping, image); err != nil || may {
		// Remove the metadata of the stored record, so that hold can recreate the record if a prune
		// deletes it.
		image.UID, image.ResourceVersion, image.CreationTimestamp = "", "", metav1.Time{}
		return image, err
	}
	return &imagev1.Image{DockerImageReference: claimed.DockerImageReference}, nil
}

// mayRead reports whether the user is allowed to read an image through the mapping's stream, or
// through another stream that the user can pull from.
func (m *mappings) mayRead(ctx context.Context, mapping *imagev1.ImageStreamMapping, image *imagev1.Image) (bool, error) {
	in := func(namespace, name string) (bool, error) {
		stream, err := m.stream(request.WithNamespace(ctx, namespace), name)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil && inHistory(stream, image.Name), err
	}
	if there, err := in(mapping.Namespace, mapping.Name); err != nil || there {
		return there, err
	}
	parsed, err := record.ParseReference(image.DockerImageReference)
	if err != nil || !m.options.integrated(parsed.Registry) {
		return false, nil
	}
	namespace, name, _ := strings.Cut(parsed.Repository, "/")
	user, ok := request.UserFrom(ctx)
	if !ok {
		return false, nil
	}
	if may, err := pull.Authorized(m.authorizer)(ctx, user, pull.Get, namespace, name); err != nil || !may {
		return false, err
	}
	return in(namespace, name)
}

// tagAnnotation is the image annotation that contains the time of the last mapping.
const tagAnnotation = "slipway.openshift.io/tagged"

// hold protects the record of a newly tagged image from a prune that has already read the streams.
// A prune deletes a record only if the record has not changed since the prune read it, and hold
// changes the record. If the record has already been deleted, hold recreates it.
func (m *mappings) hold(ctx context.Context, image *imagev1.Image, options *metav1.CreateOptions) error {
	project := request.NamespaceValue(ctx)
	ctx = request.WithNamespace(ctx, "")
	now := func(_ context.Context, _, object runtime.Object) (runtime.Object, error) {
		next := object.DeepCopyObject().(*imagev1.Image)
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, tagAnnotation, time.Now().UTC().Format(time.RFC3339Nano))
		return next, nil
	}
	_, _, err := m.images.Update(ctx, image.Name, rest.DefaultUpdatedObjectInfo(nil, now), nil, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	stored := image.DeepCopy()
	stored.UID, stored.ResourceVersion, stored.CreationTimestamp = "", "", metav1.Time{}
	if err = m.create(ctx, project, stored, options.DryRun); apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// checkLimits returns an error if an image exceeds the project's limits. It is called before the
// image is stored.
func (m *mappings) checkLimits(stream *imagev1.ImageStream, tag string, image *imagev1.Image, event imagev1.TagEvent) error {
	if err := m.limits.checkImage(stream.Namespace, image); err != nil {
		return err
	}
	plan := stream.DeepCopy()
	addEvent(plan, tag, event)
	if problems := m.limits.checkStream(plan, stream); len(problems) > 0 {
		return apierrors.NewForbidden(imagev1.Resource("imagestreams"), stream.Name, problems.ToAggregate())
	}
	return nil
}

// tagInto adds the image to a tag's history as the newest image. The tag keeps its older images and
// its target.
func (m *mappings) tagInto(ctx context.Context, stream *imagev1.ImageStream, tag string, event imagev1.TagEvent, options *metav1.UpdateOptions) error {
	event.Created, event.Generation = metav1.Now(), stream.Generation
	if !addEvent(stream, tag, event) {
		return nil
	}
	followers(stream, tag, event, map[string]bool{})
	return replace(ctx, m.status, stream, options)
}

// writesImages reports whether the user is allowed to write image records, as the registry is.
func (m *mappings) writesImages(ctx context.Context) bool {
	user, _ := request.UserFrom(ctx)
	for _, verb := range []string{"create", "update"} {
		decision, _, err := m.authorizer.Authorize(ctx, authorizer.AttributesRecord{
			User: user, Verb: verb, APIGroup: imagev1.GroupName, APIVersion: "v1", Resource: "images", ResourceRequest: true,
		})
		if err == nil && decision == authorizer.DecisionAllow {
			return true
		}
	}
	return false
}

// verify returns a copy of an image that contains only the pull spec and the fields that the
// image's manifest and configuration prove. Ordinary users must not set labels, annotations,
// signatures or metadata. This restriction is necessary because these fields determine whether an
// image can run and whether the registry keeps its layers.
func verify(claimed *imagev1.Image) (*imagev1.Image, error) {
	manifest := []byte(claimed.DockerImageManifest)
	content := record.Content{MediaType: record.TypeOf(manifest), Manifest: manifest}
	config := []byte(claimed.DockerImageConfig)
	if id, err := record.ConfigDigest(content.Manifest); err == nil && record.HasDigest(config, id) {
		content.Config = config
	}
	image, err := record.Of(content)
	if err != nil {
		return nil, err
	}
	parsed, err := record.ParseReference(claimed.DockerImageReference)
	if err != nil {
		return nil, err
	}
	image.DockerImageReference = parsed.AtDigest(image.Name)
	image.Annotations[record.ReferenceClaimed] = "true"
	return image, nil
}

// setPlace sets a missing pull spec to the image's pull spec in the cluster's registry, as
// OpenShift 3 does.
func (o Options) setPlace(mapping *imagev1.ImageStreamMapping) {
	if image := &mapping.Image; image.DockerImageReference == "" && image.Name != "" && o.Registry != "" {
		image.DockerImageReference = o.Registry + "/" + mapping.Namespace + "/" + mapping.Name + "@" + image.Name
	}
}

// checkPlace rejects pull specs that refer to other image streams in the cluster's registry. These
// pull specs would give users access to images that they are not allowed to pull.
func (o Options) checkPlace(mapping *imagev1.ImageStreamMapping) field.ErrorList {
	parsed, err := record.ParseReference(mapping.Image.DockerImageReference)
	if err != nil || !o.integrated(parsed.Registry) || parsed.Repository == mapping.Namespace+"/"+mapping.Name {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("image", "dockerImageReference"),
		"an image of the cluster's registry can only be mapped into its own image stream; create a tag that refers to it")}
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
	if manifest := []byte(mapping.Image.DockerImageManifest); len(manifest) > 0 {
		id, err := record.DigestOf(manifest)
		switch {
		case err != nil:
			problems = append(problems, field.Invalid(field.NewPath("image", "dockerImageManifest"), "<manifest>", err.Error()))
		case id != mapping.Image.Name:
			problems = append(problems, field.Invalid(field.NewPath("image", "metadata", "name"), mapping.Image.Name, fmt.Sprintf("the manifest belongs to %q", id)))
		}
	}
	return append(problems, validateContent(&mapping.Image, field.NewPath("image"))...)
}
