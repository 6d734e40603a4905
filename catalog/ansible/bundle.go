package ansible

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/internal/yamllimit"
)

// specLabel is the image label that contains the base64-encoded apb.yml.
const specLabel = "com.redhat.apb.spec"

// runtimeLabel is the image label that contains the version of the contract between the broker and
// the image. Images of version 2 write the credentials to a secret. An image without the label has
// version 1: it keeps the credentials in its container, and waits until the broker has read them.
const runtimeLabel = "com.redhat.apb.runtime"

// bundleTag is the image stream tag of bundles.
const bundleTag = "latest"

// bundle is an Ansible playbook bundle.
type bundle struct {
	// Namespace and Stream identify the image stream. Image is the pull spec of the image.
	Namespace, Stream, Image string
	Spec                     spec
}

// spec is the content of an apb.yml file.
type spec struct {
	Version     string         `json:"version"`
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Bindable    bool           `json:"bindable"`
	Async       string         `json:"async"`
	Tags        []string       `json:"tags"`
	Metadata    map[string]any `json:"metadata"`
	Plans       []plan         `json:"plans"`
	// Runtime is the value of runtimeLabel.
	Runtime int `json:"-"`
}

// plan is a plan of a bundle.
type plan struct {
	Name           string         `json:"name"`
	Description    string         `json:"description"`
	Free           bool           `json:"free"`
	Metadata       map[string]any `json:"metadata"`
	Parameters     []parameter    `json:"parameters"`
	BindParameters []parameter    `json:"bind_parameters"`
	UpdatesTo      []string       `json:"updates_to"`
}

// parameter is a parameter of a plan.
type parameter struct {
	Name         string   `json:"name"`
	Title        string   `json:"title"`
	Description  string   `json:"description"`
	Type         string   `json:"type"`
	Default      any      `json:"default"`
	Required     bool     `json:"required"`
	Updatable    bool     `json:"updatable"`
	Pattern      string   `json:"pattern"`
	MaxLength    int      `json:"max_length"`
	MinLength    int      `json:"min_length"`
	Maximum      *float64 `json:"maximum"`
	Minimum      *float64 `json:"minimum"`
	Enum         []string `json:"enum"`
	DisplayType  string   `json:"display_type"`
	DisplayGroup string   `json:"display_group"`
}

// id returns the ID of the service. It stays the same when the image changes.
func (b *bundle) id() string { return derive(b.Namespace + "/" + b.Stream) }

func (b *bundle) planID(name string) string { return derive(b.Namespace + "/" + b.Stream + ":" + name) }

func derive(name string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("apb:"+name)).String()
}

// plan returns the plan with the given ID, or nil.
func (b *bundle) plan(id string) *plan {
	at := slices.IndexFunc(b.Spec.Plans, func(p plan) bool { return b.planID(p.Name) == id })
	if at < 0 {
		return nil
	}
	return &b.Spec.Plans[at]
}

// separate reports whether the bundle runs once for each binding. Otherwise, bindings receive the
// instance's credentials.
func (s *spec) separate() bool { return s.Bindable && s.Async != "unsupported" }

// bundles returns the offered bundles and the number of images that were read. It does not return
// images with an invalid specification. rejected contains the errors in those specifications.
func (b *broker) bundles(ctx context.Context) (all []bundle, images int, rejected, err error) {
	seen := map[string]bool{} // a stream can belong to several registries
	for _, o := range b.origins {
		streams, err := b.images.ImageStreams(o.namespace).List(ctx, metav1.ListOptions{LabelSelector: o.selector.String()})
		if err != nil {
			return nil, 0, nil, fmt.Errorf("list image streams of project %q: %w", o.namespace, err)
		}
		for i := range streams.Items {
			stream := &streams.Items[i]
			key := o.namespace + "/" + stream.Name
			if seen[key] || !o.offersStream(stream) {
				continue
			}
			seen[key] = true
			result, err := b.readStream(ctx, stream)
			if err != nil {
				return nil, 0, nil, err
			}
			rejected = errors.Join(rejected, result.rejected)
			if result.hasImage {
				images++
			}
			if result.bundle != nil {
				all = append(all, *result.bundle)
			}
		}
	}
	return all, images, rejected, nil
}

// streamResult is the result of reading an image stream.
type streamResult struct {
	// bundle is nil if the stream has no image or if the image is not a bundle.
	bundle   *bundle
	hasImage bool
	// rejected is the reason why the stream has no image, or why its bundle is invalid.
	rejected error
}

// readStream reads the bundle of an image stream.
func (b *broker) readStream(ctx context.Context, stream *imagev1.ImageStream) (result streamResult, err error) {
	tag, err := b.images.ImageStreamTags(stream.Namespace).Get(ctx, stream.Name+":"+bundleTag, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		result.rejected = importFailure(stream)
		return result, nil
	}
	if err != nil {
		return result, fmt.Errorf("read image %q of project %q: %w", stream.Name, stream.Namespace, err)
	}
	result.hasImage = true
	spec, ok, err := specOf(&tag.Image)
	switch {
	case err != nil:
		result.rejected = fmt.Errorf("image stream %s/%s: %w", stream.Namespace, stream.Name, err)
	case ok:
		result.bundle = &bundle{stream.Namespace, stream.Name, tag.Image.DockerImageReference, spec}
		return result, b.hideSecrets(ctx, stream.Name, &result.bundle.Spec)
	}
	return result, nil
}

// offersStream reports whether an origin offers the image of an image stream.
func (o origin) offersStream(stream *imagev1.ImageStream) bool {
	return o.offers(cmp.Or(stream.Annotations[imageAnnotation], stream.Name))
}

// offersStream reports whether one of the broker's origins contains an image stream and offers its
// image.
func (b *broker) offersStream(stream *imagev1.ImageStream) bool {
	return slices.ContainsFunc(b.origins, func(o origin) bool {
		return o.namespace == stream.Namespace && o.selector.Matches(labels.Set(stream.Labels)) && o.offersStream(stream)
	})
}

// importFailure returns the reason why the image of a stream could not be imported, or nil.
func importFailure(stream *imagev1.ImageStream) error {
	for _, tag := range stream.Status.Tags {
		for _, condition := range tag.Conditions {
			if tag.Tag == bundleTag && condition.Type == imagev1.ImportSuccess && condition.Status == corev1.ConditionFalse {
				return fmt.Errorf("image stream %s/%s: %s", stream.Namespace, stream.Name, condition.Message)
			}
		}
	}
	return nil
}

// maxSpec is the maximum size of a specification in bytes, before and after aliases are expanded,
// and maxSpecValues is the maximum number of its values. The limits are necessary because a
// registry determines the content of its images' specifications.
const maxSpec, maxSpecValues = 256 << 10, 10_000

// specOf returns an image's specification. ok is false if the image is not a bundle.
func specOf(image *imagev1.Image) (result spec, ok bool, err error) {
	var metadata struct {
		Config struct{ Labels map[string]string }
	}
	if len(image.DockerImageMetadata.Raw) > 0 {
		if err := json.Unmarshal(image.DockerImageMetadata.Raw, &metadata); err != nil {
			return result, false, fmt.Errorf("read image metadata: %w", err)
		}
	}
	label, ok := metadata.Config.Labels[specLabel]
	if !ok {
		return result, false, nil
	}
	text, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(label), ""))
	if err == nil && len(text) > maxSpec {
		err = fmt.Errorf("it has more than %d bytes", maxSpec)
	}
	if err == nil {
		err = yamllimit.Check(text, maxSpecValues, maxSpec)
	}
	if err == nil {
		err = yaml.Unmarshal(text, &result)
	}
	if err != nil {
		return result, true, fmt.Errorf("decode label %s: %w", specLabel, err)
	}
	if result.Runtime, err = strconv.Atoi(cmp.Or(metadata.Config.Labels[runtimeLabel], "1")); err != nil {
		return result, true, fmt.Errorf("label %s: %w", runtimeLabel, err)
	}
	return result, true, result.validate()
}

// validate returns an error that describes all problems in a specification.
func (s *spec) validate() error {
	var errs []error
	fail := func(format string, values ...any) {
		errs = append(errs, fmt.Errorf("label %s: "+format, append([]any{specLabel}, values...)...))
	}
	if s.Name == "" {
		fail("name is missing")
	}
	if !slices.Contains([]string{"", "optional", "required", "unsupported"}, s.Async) {
		fail("async is %q, must be optional, required or unsupported", s.Async)
	}
	if s.Runtime < 1 {
		errs = append(errs, fmt.Errorf("label %s is %d, must be 1 or 2", runtimeLabel, s.Runtime))
	}
	if len(s.Plans) == 0 {
		fail("plans is empty")
	}
	names := map[string]bool{}
	for _, plan := range s.Plans {
		if plan.Name == "" || names[plan.Name] {
			fail("plans: name %q is missing or not unique", plan.Name)
		}
		names[plan.Name] = true
		for _, p := range slices.Concat(plan.Parameters, plan.BindParameters) {
			if p.Name == "" || typeOf(p) == "" {
				fail("plans.%s: parameter %q has no name, or the unknown type %q", plan.Name, p.Name, p.Type)
			}
			if _, err := regexp.Compile(p.Pattern); err != nil {
				fail("plans.%s: pattern of parameter %q: %w", plan.Name, p.Name, err)
			}
		}
	}
	return errors.Join(errs...)
}
