package ansible

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/slipway-platform/slipway/internal/registryclient"
)

// Types of registries.
const (
	// LocalRegistry is the cluster's own registry.
	LocalRegistry = "local_openshift"
	// ImageRegistry is a registry whose images are listed in the configuration.
	ImageRegistry = "openshift"
	// OrganizationRegistry is a registry in which all images of an organization can be bundles.
	OrganizationRegistry = "dockerhub"
)

// Registry is a registry whose images can be bundles. As in [Options], WhiteList and BlackList
// select bundles by name: the last component of the image's name.
//
// Source: OpenShift Container Platform 3.11, Configuring Clusters, OpenShift Ansible Broker
// Configuration, Registry Configuration.
type Registry struct {
	Name, Type string
	// URL is the URL of the registry, such as https://registry.example.com:5000. A LocalRegistry
	// has no URL.
	URL string
	// Org is the path of an OrganizationRegistry's images.
	Org string
	// Images lists the names of images without tags, relative to the server. Tag is the tag of all
	// images.
	Images []string
	Tag    string
	// Namespaces lists the projects that a LocalRegistry covers.
	Namespaces []string
	// Insecure means that the server does not require a valid certificate.
	Insecure             bool
	WhiteList, BlackList []string
}

// server returns the registry's host and port.
func (r *Registry) server() string { return strings.TrimPrefix(r.URL, "https://") }

// Labels and annotations on the image streams that the broker creates for other registries.
const (
	// registryLabel contains the name of the registry.
	registryLabel = "slipway.openshift.io/ansible-registry"
	// imageAnnotation contains the last component of the image's name.
	imageAnnotation = "slipway.openshift.io/ansible-image"
)

// origin is a set of image streams that can be bundles.
type origin struct {
	namespace string
	// selector is the label selector for the image streams of the origin.
	selector    labels.Selector
	allow, deny []*regexp.Regexp
}

// origins returns the origins of bundles: the projects in the options, and the additional
// registries.
func origins(options Options) (all []origin, err error) {
	add := func(namespace, selector string, white, black []string) error {
		allow, err := compile(white)
		if err != nil {
			return err
		}
		deny, err := compile(black)
		if err != nil {
			return err
		}
		streams, err := labels.Parse(selector)
		all = append(all, origin{namespace, streams, allow, deny})
		return err
	}
	for _, project := range options.Namespaces {
		if err := add(project, "!"+registryLabel, options.WhiteList, options.BlackList); err != nil {
			return nil, err
		}
	}
	for _, r := range options.Registries {
		projects, selector := r.Namespaces, "!"+registryLabel
		if r.Type != LocalRegistry {
			projects, selector = []string{namespace}, registryLabel+"="+r.Name
		}
		for _, project := range projects {
			if err := add(project, selector, r.WhiteList, r.BlackList); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// offers reports whether the white and black lists allow the name of an image. If both lists are
// empty, nothing is offered.
//
// Source: OpenShift Container Platform 3.11, Configuring Clusters, OpenShift Ansible Broker
// Configuration.
func (o origin) offers(name string) bool {
	allowed := matches(o.allow, name) || len(o.allow) == 0 && len(o.deny) > 0
	return allowed && !matches(o.deny, name)
}

func matches(expressions []*regexp.Regexp, name string) bool {
	return slices.ContainsFunc(expressions, func(e *regexp.Regexp) bool { return e.MatchString(name) })
}

// importRegistries creates the missing image streams for images in other registries. The cluster
// then imports the images, initially and after each change. Because the cluster's registry serves
// the images, the bundles' pods require no credentials for the other registries.
func (b *broker) importRegistries(ctx context.Context) error {
	var errs []error
	for i := range b.options.Registries {
		r := &b.options.Registries[i]
		if r.Type == LocalRegistry {
			continue
		}
		if err := b.importRegistry(ctx, r); err != nil {
			errs = append(errs, fmt.Errorf("registry %q: %w", r.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (b *broker) importRegistry(ctx context.Context, r *Registry) error {
	images, err := r.Images, error(nil)
	if r.Type == OrganizationRegistry {
		images, err = b.organization(ctx, r)
	}
	if err != nil {
		return err
	}
	all, err := origins(Options{Registries: []Registry{*r}})
	if err != nil {
		return err
	}
	var errs []error
	for _, image := range images {
		if all[0].offers(path.Base(image)) {
			errs = append(errs, b.importImage(ctx, r, image))
		}
	}
	return errors.Join(errs...)
}

// organization returns the names of all images in a registry's organization.
func (b *broker) organization(ctx context.Context, r *Registry) ([]string, error) {
	secrets, err := b.kube.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list registry credentials: %w", err)
	}
	account, err := b.options.Pool.Open(namespace)
	if err != nil {
		return nil, err
	}
	defer account.Close()
	client := b.options.Pool.Client(account, r.Insecure)
	// An invalid secret does not prevent the use of the credentials in other secrets.
	client.Keychain, _ = registryclient.KeychainOf(secrets.Items)
	return client.Repositories(ctx, r.server(), strings.Trim(r.Org, "/")+"/")
}

var notInStreams = regexp.MustCompile(`[^a-z0-9]+`)

// importImage creates or updates the image stream for an image.
func (b *broker) importImage(ctx context.Context, r *Registry, image string) error {
	existing, name, err := b.streamOf(ctx, r, image)
	if err != nil {
		return err
	}
	stream := &imagev1.ImageStream{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Labels:      map[string]string{registryLabel: r.Name},
			Annotations: map[string]string{imageAnnotation: path.Base(image)},
		},
		Spec: imagev1.ImageStreamSpec{Tags: []imagev1.TagReference{{
			Name: bundleTag, From: &corev1.ObjectReference{Kind: "DockerImage", Name: r.server() + "/" + image + ":" + r.Tag},
			ImportPolicy:    imagev1.TagImportPolicy{Insecure: r.Insecure, Scheduled: true},
			ReferencePolicy: imagev1.TagReferencePolicy{Type: imagev1.LocalTagReferencePolicy},
		}}},
	}
	streams := b.images.ImageStreams(namespace)
	switch {
	case existing == nil:
		_, err = streams.Create(ctx, stream, metav1.CreateOptions{})
	case len(existing.Spec.Tags) != 1 || existing.Spec.Tags[0].From == nil || existing.Spec.Tags[0].From.Name != stream.Spec.Tags[0].From.Name ||
		existing.Spec.Tags[0].ImportPolicy.Insecure != r.Insecure:
		existing.Spec.Tags = stream.Spec.Tags
		_, err = streams.Update(ctx, existing, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("store image stream %q: %w", stream.Name, err)
	}
	return nil
}

// streamOf returns the image stream for an image (nil if it does not exist) and the name of the
// stream. A stream's name never changes, because it determines the ID of the service. If the stream
// of another image already has the short name, streamOf appends a hash. For example, team/a-b-apb
// and team/a/b-apb have the same short name.
func (b *broker) streamOf(ctx context.Context, r *Registry, image string) (*imagev1.ImageStream, string, error) {
	name := r.Name + "-" + strings.Trim(notInStreams.ReplaceAllString(image, "-"), "-")
	sum := sha256.Sum256([]byte(r.Name + "/" + image))
	distinct := name + "-" + hex.EncodeToString(sum[:4])
	for _, candidate := range []string{distinct, name} {
		stream, err := b.images.ImageStreams(namespace).Get(ctx, candidate, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, "", fmt.Errorf("read image stream %q: %w", candidate, err)
		case stream.Labels[registryLabel] == r.Name && slices.Contains([]string{"", image}, imageOf(stream)):
			return stream, candidate, nil
		default: // the stream imports another image
			return nil, distinct, nil
		}
	}
	return nil, name, nil
}

// imageOf returns the name of the image that a stream imports, without its server and tag, or "".
func imageOf(stream *imagev1.ImageStream) string {
	if len(stream.Spec.Tags) != 1 || stream.Spec.Tags[0].From == nil {
		return ""
	}
	_, image, _ := strings.Cut(stream.Spec.Tags[0].From.Name, "/")
	if tag := strings.LastIndex(image, ":"); tag >= 0 {
		image = image[:tag]
	}
	return image
}
