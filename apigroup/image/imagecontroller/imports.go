package imagecontroller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	imagev1 "github.com/openshift/api/image/v1"
	imageclient "github.com/openshift/client-go/image/clientset/versioned/typed/image/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/slipway-platform/slipway/apigroup/image/record"
	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/internal/projectowner"
)

// checkAnnotation is the image stream annotation that contains the time of the last import.
const checkAnnotation = "openshift.io/image.dockerRepositoryCheck"

// importController returns the controller that imports the images that tags refer to. It imports an
// image after its tag has changed, and periodically if the tag is scheduled.
func (s *Streams) importController(client imageclient.ImageV1Interface, streams, namespaces cache.SharedIndexInformer) controller.Controller {
	limit, running := s.limiter(), &running{}
	return controller.Controller{
		Name:    "image-import",
		Watches: []controller.Watch{{Informer: streams}},
		Reads:   []cache.SharedIndexInformer{namespaces},
		Workers: 16, // imports mostly wait for registries, and maxRunning limits each owner
		Reconcile: func(ctx context.Context, key controller.Key) error {
			existing := stream(streams, key)
			if existing == nil || existing.DeletionTimestamp != nil {
				return nil
			}
			owner := projectowner.Of(namespaces.GetIndexer(), existing.Namespace)
			if !running.begin(owner) {
				return controller.RequeueAfter(requeueDelay)
			}
			defer running.end(owner)
			return s.reconcileImports(ctx, client, limit, existing, owner)
		},
	}
}

const (
	// maxTags is the maximum number of tags in one import request, which can take 20 seconds. All
	// tags in a request are in the same registry, so an unresponsive registry does not delay
	// imports from other registries.
	maxTags = 50
	// perIndex is the weight of the complete import of an index, in tags. It is roughly the number
	// of images in a published index.
	perIndex = 10
	// postponeDelay is how long scheduled imports that would exceed the rate limit are postponed.
	postponeDelay = 10 * time.Second
	// maxRunning is the maximum number of concurrent imports for all projects of one owner. It is
	// lower than the API server's limit for a project, so that users can still import images.
	maxRunning = 3
	// requeueDelay is the delay before a stream is reconciled again. A stream is requeued if it has
	// changed during an import, or if its owner has too many running imports. After this delay, the
	// cache is up to date.
	requeueDelay = time.Second
)

// running counts the running imports of each owner of projects, so that no user can occupy all
// workers.
type running struct {
	mu     sync.Mutex
	owners map[string]int
}

// begin counts a new import. It returns false if the owner has too many running imports.
func (r *running) begin(owner string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.owners[owner] >= maxRunning {
		return false
	}
	if r.owners == nil {
		r.owners = map[string]int{}
	}
	r.owners[owner]++
	return true
}

// end removes a finished import from the count.
func (r *running) end(owner string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.owners[owner]--; r.owners[owner] == 0 {
		delete(r.owners, owner)
	}
}

func (s *Streams) reconcileImports(ctx context.Context, client imageclient.ImageV1Interface, limit flowcontrol.RateLimiter, stream *imagev1.ImageStream, owner string) error {
	wait, due := s.due(stream, time.Now())
	if due && !s.turns.take(owner, time.Now(), limit.TryAccept) {
		wait, due = postponeDelay, false
	}
	for _, spec := range importSpecs(stream, due) {
		_, err := client.ImageStreamImports(stream.Namespace).Create(ctx, &imagev1.ImageStreamImport{
			ObjectMeta: metav1.ObjectMeta{Namespace: stream.Namespace, Name: stream.Name, UID: stream.UID, Generation: stream.Generation},
			Spec:       spec,
		}, metav1.CreateOptions{})
		if apierrors.IsConflict(err) {
			return controller.RequeueAfter(requeueDelay)
		}
		if err != nil && !apierrors.IsNotFound(err) { // NotFound means that the project was deleted
			return fmt.Errorf("import into image stream %q: %w", stream.Namespace+"/"+stream.Name, err)
		}
	}
	if wait > 0 {
		return controller.RequeueAfter(wait)
	}
	return nil
}

// importSpecs returns the imports that a stream requires. If due is true, the imports include
// scheduled tags. A repository is imported separately, because its import changes the tags.
func importSpecs(stream *imagev1.ImageStream, due bool) (specs []imagev1.ImageStreamImportSpec) {
	if repository := stream.Spec.DockerImageRepository; repository != "" && stream.Annotations[checkAnnotation] == "" {
		from := corev1.ObjectReference{Kind: "DockerImage", Name: repository}
		return []imagev1.ImageStreamImportSpec{{Import: true, Repository: &imagev1.RepositoryImportSpec{From: from}}}
	}
	var images []imagev1.ImageImportSpec
	for i := range stream.Spec.Tags {
		tag := &stream.Spec.Tags[i]
		if imports(tag) && (due && tag.ImportPolicy.Scheduled || pending(stream, tag)) {
			images = append(images, imageOf(tag))
		}
	}
	slices.SortStableFunc(images, func(a, b imagev1.ImageImportSpec) int { return strings.Compare(registryOf(a), registryOf(b)) })
	for len(images) > 0 {
		n, tags := 1, tagsOf(images[0])
		for n < len(images) && registryOf(images[n]) == registryOf(images[0]) {
			if tags += tagsOf(images[n]); tags > maxTags {
				break
			}
			n++
		}
		specs = append(specs, imagev1.ImageStreamImportSpec{Import: true, Images: images[:n]})
		images = images[n:]
	}
	return specs
}

// tagsOf returns the weight of an image import, in tags.
func tagsOf(image imagev1.ImageImportSpec) int {
	if image.ImportPolicy.ImportMode == imagev1.ImportModePreserveOriginal {
		return perIndex
	}
	return 1
}

// registryOf returns the registry of an image.
func registryOf(image imagev1.ImageImportSpec) string {
	reference, _ := record.ParseReference(image.From.Name) // the import rejects invalid references
	return reference.Registry
}

// due reports whether a stream's scheduled tags are due. wait is the time until they are due again,
// or 0 if the stream has no scheduled tags.
func (s *Streams) due(stream *imagev1.ImageStream, now time.Time) (wait time.Duration, due bool) {
	any := false
	for i := range stream.Spec.Tags {
		any = any || imports(&stream.Spec.Tags[i]) && stream.Spec.Tags[i].ImportPolicy.Scheduled
	}
	if !any || s.Interval == 0 {
		return 0, false
	}
	last, err := time.Parse(time.RFC3339, stream.Annotations[checkAnnotation])
	if err != nil {
		return s.Interval, true
	}
	if rest := last.Add(s.Interval).Sub(now); rest > 0 {
		return min(rest, s.Interval), false
	}
	return s.Interval, true
}

// imports reports whether a tag refers to an image that must be imported.
func imports(tag *imagev1.TagReference) bool {
	return tag.From != nil && tag.From.Kind == "DockerImage" && !tag.Reference
}

// pending reports whether a tag has changed since its last import.
func pending(stream *imagev1.ImageStream, tag *imagev1.TagReference) bool {
	if tag.Generation == nil {
		return true
	}
	for _, list := range stream.Status.Tags {
		if list.Tag != tag.Name {
			continue
		}
		for _, condition := range list.Conditions {
			if condition.Type == imagev1.ImportSuccess && condition.Generation >= *tag.Generation {
				return false
			}
		}
		return len(list.Items) == 0 || list.Items[0].Generation < *tag.Generation
	}
	return true
}

func imageOf(tag *imagev1.TagReference) imagev1.ImageImportSpec {
	return imagev1.ImageImportSpec{
		From: *tag.From, To: &corev1.LocalObjectReference{Name: tag.Name}, ImportPolicy: tag.ImportPolicy, ReferencePolicy: tag.ReferencePolicy,
	}
}
