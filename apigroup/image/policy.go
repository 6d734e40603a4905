package image

import (
	"context"
	"fmt"
	"io"
	"strings"

	imagev1 "github.com/openshift/api/image/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/slipway-platform/slipway/apigroup/image/record"
	"github.com/slipway-platform/slipway/apiserver"
)

// policy is the admission plug-in ImagePolicy: it reads the names of image streams in place of images, replaces names by those with a digest, and
// decides which images may run.
type policy struct {
	*admission.Handler
	options Options
	config  policyConfig
	deps    *apiserver.Deps // of the server; its stores are there before the first request

	namespaces corelisters.NamespaceLister
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

// SetExternalKubeInformerFactory gives the API server's caches.
func (p *policy) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	p.namespaces = factory.Core().V1().Namespaces().Lister()
	p.SetReadyFunc(factory.Core().V1().Namespaces().Informer().HasSynced)
}

// ValidateInitialization says whether the caches were given.
func (p *policy) ValidateInitialization() error {
	if p.namespaces == nil {
		return fmt.Errorf("%s was given no namespaces", PolicyName)
	}
	return nil
}

// resolveNames on a workload says with "*" that its images may be named by local streams, whatever those say.
const resolveNames = "alpha.image.policy.openshift.io/resolve-names"

// Admit replaces names of images.
func (p *policy) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	return p.each(a, func(container, old *corev1.Container, annotations map[string]string) error {
		rule := p.config.rule(a.GetResource().GroupResource())
		if old != nil && old.Image == container.Image {
			return nil
		}
		reference, local, err := p.resolve(ctx, a.GetNamespace(), container.Image, rule.LocalNames, annotations[resolveNames] == "*")
		if err != nil {
			return admission.NewForbidden(a, err)
		}
		if reference == "" && rule.Policy.requires() && !strings.Contains(container.Image, "@") {
			return admission.NewForbidden(a, fmt.Errorf("image %q is in no image stream, as the image policy requires", container.Image))
		}
		if reference != "" && (local || rule.Policy.rewrites()) {
			container.Image = reference
		}
		return nil
	})
}

// Validate decides whether the images may run.
func (p *policy) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	return p.each(a, func(container, old *corev1.Container, _ map[string]string) error {
		if old != nil && old.Image == container.Image {
			return nil
		}
		wanted := candidate{name: container.Image, registry: registryIn(container.Image)}
		wanted.integrated = p.options.integrated(wanted.registry)
		reference, _, err := p.resolve(ctx, a.GetNamespace(), container.Image, false, false)
		if err == nil {
			wanted.image, err = p.image(ctx, reference, container.Image)
		}
		if err != nil {
			return admission.NewForbidden(a, err)
		}
		reason := p.config.decide(a.GetResource().GroupResource(), wanted)
		if reason == "" {
			return nil
		}
		if wanted.ignored, err = p.ignored(a.GetNamespace()); err != nil {
			return admission.NewForbidden(a, err)
		}
		if reason = p.config.decide(a.GetResource().GroupResource(), wanted); reason != "" {
			return admission.NewForbidden(a, fmt.Errorf("%s", reason))
		}
		return nil
	})
}

// ignoreRules on a namespace names the rules of execution that do not count there, with commas between them.
const ignoreRules = "alpha.image.policy.openshift.io/ignore-rules"

// ignored are the rules that do not count in a namespace. A rule without a name always counts.
func (p *policy) ignored(name string) ([]string, error) {
	if !p.WaitForReady() {
		return nil, fmt.Errorf("namespaces are not known yet")
	}
	namespace, err := p.namespaces.Get(name)
	if err != nil {
		return nil, fmt.Errorf("find project: %w", err)
	}
	return strings.FieldsFunc(namespace.Annotations[ignoreRules], func(r rune) bool { return r == ',' }), nil
}

// each visits the containers of what is made or changed, with what they were.
func (p *policy) each(a admission.Attributes, visit func(container, old *corev1.Container, annotations map[string]string) error) error {
	if sub := a.GetSubresource(); sub != "" && sub != "ephemeralcontainers" {
		return nil
	}
	spec, annotations := podSpec(a.GetObject())
	if spec == nil {
		return nil
	}
	_, pod := a.GetObject().(*corev1.Pod)
	if _, mirrored := annotations[corev1.MirrorPodAnnotationKey]; pod && mirrored { // kubelet runs it already, or removes it
		return nil
	}
	old, _ := podSpec(a.GetOldObject())
	if old == nil {
		old = &corev1.PodSpec{}
	}
	before := containers(old)
	for _, container := range containers(spec) {
		if err := visit(container, named(before, container.Name), annotations); err != nil {
			return err
		}
	}
	return nil
}

// containers are all of a pod, the ephemeral ones too; their names differ.
func containers(spec *corev1.PodSpec) (all []*corev1.Container) {
	for i := range spec.InitContainers {
		all = append(all, &spec.InitContainers[i])
	}
	for i := range spec.Containers {
		all = append(all, &spec.Containers[i])
	}
	for i := range spec.EphemeralContainers {
		all = append(all, (*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
	return all
}

func named(containers []*corev1.Container, name string) *corev1.Container {
	for _, container := range containers {
		if container.Name == name {
			return container
		}
	}
	return nil
}

// podSpec is that of a pod or of a workload's template, with the annotations of the object.
func podSpec(object runtime.Object) (*corev1.PodSpec, map[string]string) {
	switch o := object.(type) {
	case *corev1.Pod:
		return &o.Spec, o.Annotations
	case *corev1.ReplicationController:
		if o.Spec.Template == nil {
			return nil, nil
		}
		return &o.Spec.Template.Spec, o.Annotations
	case *appsv1.Deployment:
		return &o.Spec.Template.Spec, o.Annotations
	case *appsv1.ReplicaSet:
		return &o.Spec.Template.Spec, o.Annotations
	case *appsv1.StatefulSet:
		return &o.Spec.Template.Spec, o.Annotations
	case *appsv1.DaemonSet:
		return &o.Spec.Template.Spec, o.Annotations
	case *batchv1.Job:
		return &o.Spec.Template.Spec, o.Annotations
	case *batchv1.CronJob:
		return &o.Spec.JobTemplate.Spec.Template.Spec, o.Annotations
	}
	return nil, nil
}

// resolve finds the image with a digest that a name stands for: a local stream's tag, or a tag in the cluster's registry. Without one it is "".
func (p *policy) resolve(ctx context.Context, namespace, name string, localNames, evenIfNotLocal bool) (reference string, local bool, err error) {
	streamName, tag, digested := strings.Cut(name, ":")
	if !digested {
		tag = "latest"
	}
	if !strings.ContainsAny(name, "/@") {
		if !localNames {
			return "", false, nil
		}
		stream, err := p.stream(ctx, namespace, streamName)
		if err != nil || stream == nil || !stream.Spec.LookupPolicy.Local && !evenIfNotLocal {
			return "", false, err
		}
		return pullSpec(stream, tag, p.options.Registry), true, nil
	}
	if !p.options.integrated(registryIn(name)) {
		return "", false, nil
	}
	parsed, err := record.ParseReference(name)
	if err != nil || parsed.Digest != "" {
		return "", false, nil // kubelet says what is wrong with it
	}
	namespace, streamName, _ = strings.Cut(parsed.Repository, "/")
	stream, err := p.stream(ctx, namespace, streamName)
	if err != nil || stream == nil {
		return "", false, err
	}
	if tag = parsed.Tag; tag == "" {
		tag = "latest"
	}
	return pullSpec(stream, tag, p.options.Registry), false, nil
}

// pullSpec is where a node pulls the image of a tag, with its digest, or "".
func pullSpec(stream *imagev1.ImageStream, tag, registry string) string {
	items := history(stream, tag)
	if len(items) == 0 {
		return ""
	}
	if wanted := specTag(stream, tag); wanted != nil && wanted.ReferencePolicy.Type == imagev1.LocalTagReferencePolicy && registry != "" {
		return registry + "/" + stream.Namespace + "/" + stream.Name + "@" + items[0].Image
	}
	return items[0].DockerImageReference
}

// stream reads a stream, nil if there is none.
func (p *policy) stream(ctx context.Context, namespace, name string) (*imagev1.ImageStream, error) {
	store := p.deps.Stores[imagev1.Resource("imagestreams")]
	found, err := store.Get(request.WithNamespace(ctx, namespace), name, &metav1.GetOptions{})
	if errors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read image stream %q: %w", namespace+"/"+name, err)
	}
	return found.(*imagev1.ImageStream), nil
}

// image reads the record of an image by the digest in one of its names, nil if there is none.
func (p *policy) image(ctx context.Context, names ...string) (*imagev1.Image, error) {
	for _, name := range names {
		_, id, found := strings.Cut(name, "@")
		if !found {
			continue
		}
		stored, err := p.deps.Stores[imagev1.Resource("images")].Get(request.WithNamespace(ctx, ""), id, &metav1.GetOptions{})
		if errors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read image %q: %w", id, err)
		}
		return stored.(*imagev1.Image), nil
	}
	return nil, nil
}
