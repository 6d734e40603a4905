package image

import (
	"context"
	"fmt"
	"io"
	"strings"

	buildv1 "github.com/openshift/api/build/v1"
	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
	"github.com/slipway-platform/slipway/apigroup/image/pull"
	"github.com/slipway-platform/slipway/apigroup/image/record"
	"github.com/slipway-platform/slipway/apiserver"
)

// policy is the ImagePolicy admission plugin. It resolves image stream names, replaces image names
// with names that contain a digest, and decides which images are allowed to run.
type policy struct {
	*admission.Handler
	options Options
	config  policyConfig
	deps    *apiserver.Deps // set by the server before the first request

	namespaces corelisters.NamespaceLister
	// reads is nil outside a request.
	reads *reads
}

var (
	_ admission.MutationInterface                  = &policy{}
	_ admission.ValidationInterface                = &policy{}
	_ initializer.WantsExternalKubeInformerFactory = &policy{}
)

func newPolicy(options Options, deps *apiserver.Deps, reader io.Reader) (*policy, error) {
	config, err := readPolicy(reader)
	if err != nil {
		return nil, err
	}
	return &policy{Handler: admission.NewHandler(admission.Create, admission.Update), options: options, config: config, deps: deps}, nil
}

// SetExternalKubeInformerFactory sets the API server's caches.
func (p *policy) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	p.namespaces = factory.Core().V1().Namespaces().Lister()
	p.SetReadyFunc(factory.Core().V1().Namespaces().Informer().HasSynced)
}

// ValidateInitialization returns an error if the caches are not set.
func (p *policy) ValidateInitialization() error {
	if p.namespaces == nil {
		return fmt.Errorf("initialize %s: no namespace lister", PolicyName)
	}
	return nil
}

// resolveNames is a workload annotation. If its value is "*", image names can refer to the
// project's image streams even if the streams do not allow it.
const resolveNames = "alpha.image.policy.openshift.io/resolve-names"

// Admit replaces image names according to the resource's resolution rule.
func (p *policy) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	p = p.forRequest()
	rule := p.config.rule(a.GetResource().GroupResource())
	return p.each(a, func(u usage, annotations map[string]string) error {
		reference, local, err := p.resolve(ctx, a, u.image, naming{
			local: rule.LocalNames, always: annotations[resolveNames] == "*",
			readable: func(namespace, stream string) (bool, error) { return p.mayPull(ctx, a, namespace, stream) },
		})
		if err != nil {
			return admission.NewForbidden(a, err)
		}
		if reference == "" && rule.Policy.requires() && !strings.Contains(u.image.Name, "@") {
			return admission.NewForbidden(a, fmt.Errorf("image %q is not in an image stream, which the image policy requires", u.image.Name))
		}
		if reference != "" && (local || rule.Policy.rewrites()) {
			u.set(reference)
		}
		return nil
	})
}

// Validate rejects images that the execution rules do not allow.
func (p *policy) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	p = p.forRequest()
	return p.each(a, func(u usage, _ map[string]string) error {
		reference, _, err := p.resolve(ctx, a, u.image, naming{})
		if err != nil {
			return admission.NewForbidden(a, err)
		}
		desired := candidate{name: u.image.Name, registry: registryIn(u.image.Name)}
		if u.image.Kind != dockerKind {
			desired.registry = registryIn(reference)
		}
		desired.integrated = p.options.integrated(desired.registry)
		if desired.image, err = p.image(ctx, reference, u.image.Name); err != nil {
			return admission.NewForbidden(a, err)
		}
		reason := p.config.decide(a.GetResource().GroupResource(), desired)
		if reason == "" {
			return nil
		}
		if desired.ignored, err = p.ignored(a.GetNamespace()); err != nil {
			return admission.NewForbidden(a, err)
		}
		if reason = p.config.decide(a.GetResource().GroupResource(), desired); reason != "" {
			return admission.NewForbidden(a, field.Forbidden(field.NewPath(u.field), reason))
		}
		return nil
	})
}

// ignoreRules is the namespace annotation that lists the execution rules that do not apply in the
// namespace, separated by commas.
const ignoreRules = "alpha.image.policy.openshift.io/ignore-rules"

// ignored returns the names of the execution rules that do not apply in the named namespace. A rule
// without a name always applies.
func (p *policy) ignored(name string) ([]string, error) {
	if !p.WaitForReady() {
		return nil, fmt.Errorf("the namespace cache is not ready; try again")
	}
	namespace, err := p.namespaces.Get(name)
	if err != nil {
		return nil, fmt.Errorf("find project: %w", err)
	}
	return strings.FieldsFunc(namespace.Annotations[ignoreRules], func(r rune) bool { return r == ',' }), nil
}

// naming defines how resolve resolves a reference.
type naming struct {
	// local means that names without a registry can refer to the project's image streams that allow
	// it. always means that these names can refer to any of the project's image streams.
	local, always bool
	// readable reports whether the result is allowed to disclose an image stream of another
	// project. It is nil when execution rules are evaluated: they apply to all users, and the
	// result is not returned.
	readable func(namespace, stream string) (bool, error)
}

// resolve looks up a reference in the image streams. It returns the pull spec of the image,
// including the digest, or "" if the streams do not contain the image. local means that the name
// refers to this image only in this project.
func (p *policy) resolve(ctx context.Context, a admission.Attributes, of corev1.ObjectReference, by naming) (reference string, local bool, err error) {
	if of.Kind != dockerKind {
		reference, err = p.resolveKind(ctx, a, of, by)
		return reference, true, err
	}
	streamName, tag, tagged := strings.Cut(of.Name, ":")
	if !tagged {
		tag = "latest"
	}
	if !strings.ContainsAny(of.Name, "/@") {
		if !by.local {
			return "", false, nil
		}
		stream, err := p.stream(ctx, a.GetNamespace(), streamName)
		if err != nil || stream == nil || !stream.Spec.LookupPolicy.Local && !by.always {
			return "", false, err
		}
		return pull.LatestSpec(stream, tag), true, nil
	}
	if !p.options.integrated(registryIn(of.Name)) {
		return "", false, nil
	}
	parsed, err := record.ParseReference(of.Name)
	if err != nil || parsed.Digest != "" {
		return "", false, nil // a digest needs no resolution, and the kubelet reports errors
	}
	namespace, streamName, _ := strings.Cut(parsed.Repository, "/")
	stream, err := p.readableStream(ctx, a, namespace, streamName, by)
	if err != nil || stream == nil {
		return "", false, err
	}
	if tag = parsed.Tag; tag == "" {
		tag = "latest"
	}
	return pull.LatestSpec(stream, tag), false, nil
}

// readableStream returns an image stream. It returns nil if the stream does not exist, or if the
// result must not disclose the stream.
func (p *policy) readableStream(ctx context.Context, a admission.Attributes, namespace, name string, by naming) (*imagev1.ImageStream, error) {
	if namespace != a.GetNamespace() && by.readable != nil {
		if may, err := by.readable(namespace, name); err != nil || !may {
			return nil, err
		}
	}
	return p.stream(ctx, namespace, name)
}

// mayPull reports whether the request's user, or the service account of the object's pods, is
// allowed to pull from an image stream. Controllers create pods on behalf of users, and the service
// account has the permissions that the author of the pods chose.
func (p *policy) mayPull(ctx context.Context, a admission.Attributes, namespace, stream string) (bool, error) {
	check := pull.Authorized(p.deps.Authorizer)
	if may, err := check(ctx, a.GetUserInfo(), pull.Get, namespace, stream); err != nil || may {
		return may, err
	}
	account := accountOf(a.GetNamespace(), a.GetObject())
	if account == nil {
		return false, nil
	}
	return check(ctx, account, pull.Get, namespace, stream)
}

// accountOf returns the service account of an object's pods, or nil if the object has no pods.
func accountOf(namespace string, object runtime.Object) user.Info {
	if build, ok := object.(*buildv1.Build); ok {
		return instantiate.UserOf(namespace, &build.Spec.CommonSpec)
	}
	if spec, _ := podSpec(object); spec != nil {
		return pull.AccountOf(namespace, spec)
	}
	return nil
}

// resolveKind implements resolve for the kinds ImageStreamTag and ImageStreamImage.
func (p *policy) resolveKind(ctx context.Context, a admission.Attributes, of corev1.ObjectReference, by naming) (string, error) {
	namespace := of.Namespace
	if namespace == "" {
		namespace = a.GetNamespace()
	}
	name, version, _ := strings.Cut(of.Name, map[string]string{tagKind: ":", imageKind: "@"}[of.Kind])
	stream, err := p.readableStream(ctx, a, namespace, name, by)
	if err != nil || stream == nil {
		return "", err
	}
	if of.Kind == tagKind {
		return pull.LatestSpec(stream, version), nil
	}
	for _, list := range stream.Status.Tags {
		for _, event := range list.Items {
			if event.Image == version || strings.HasPrefix(event.Image, "sha256:"+version) {
				return event.DockerImageReference, nil
			}
		}
	}
	return "", nil
}

// stream returns a stream, or nil if it does not exist.
func (p *policy) stream(ctx context.Context, namespace, name string) (*imagev1.ImageStream, error) {
	object, err := p.read(ctx, imagev1.Resource("imagestreams"), namespace, name)
	if object == nil || err != nil {
		return nil, err
	}
	return object.(*imagev1.ImageStream), nil
}

// image returns an image's record. It uses the digest in the first name that contains a digest. It
// returns nil if no name contains a digest or the image does not exist.
func (p *policy) image(ctx context.Context, names ...string) (*imagev1.Image, error) {
	for _, name := range names {
		_, id, hasID := strings.Cut(name, "@")
		if !hasID {
			continue
		}
		object, err := p.read(ctx, imagev1.Resource("images"), "", id)
		if object == nil || err != nil {
			return nil, err
		}
		return object.(*imagev1.Image), nil
	}
	return nil, nil
}
