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
)

// checked on a stream is when it was last imported into.
const checked = "openshift.io/image.dockerRepositoryCheck"

// importing imports what tags are pointed at: once when that changes, and again after an interval where they ask for it.
func (s *Streams) importing(client imageclient.ImageV1Interface, streams cache.SharedIndexInformer) controller.Loop {
	limit, running := s.limiter(), &running{}
	return controller.Loop{
		Name:    "image-import",
		Watches: []controller.Watch{{Informer: streams}},
		Workers: 16, // an import waits for a registry most of the time, and a project has few at a time
		Reconcile: func(ctx context.Context, key controller.Key) error {
			found := stream(streams, key)
			if found == nil || found.DeletionTimestamp != nil {
				return nil
			}
			if !running.begin(found.Namespace) {
				return controller.After(lookAgain)
			}
			defer running.end(found.Namespace)
			return s.reconcileImports(ctx, client, limit, found)
		},
	}
}

const (
	// maxTags is how many tags are imported by one request, which has 20 seconds for all of them. They are of one registry: one that does not answer keeps
	// nobody else's waiting.
	maxTags = 50
	// perIndex is for how many tags one counts of which all images of an index are imported: about as many as published ones have.
	perIndex = 10
	// putOff is when scheduled imports that are too many at the moment are tried again.
	putOff = 10 * time.Second
	// maxRunning is how many imports of a project run at a time. It is less than the API server lets
	// a project have, so that imports by hand still come in.
	maxRunning = 3
	// lookAgain is when a stream is read again that has changed during an import, or whose project
	// has enough of them; the cache knows by then.
	lookAgain = time.Second
)

// running counts imports by project, so that one project does not take all workers.
type running struct {
	mu       sync.Mutex
	projects map[string]int
}

// begin notes an import unless the project has enough.
func (r *running) begin(project string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.projects[project] >= maxRunning {
		return false
	}
	if r.projects == nil {
		r.projects = map[string]int{}
	}
	r.projects[project]++
	return true
}

// end forgets an import.
func (r *running) end(project string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.projects[project]--; r.projects[project] == 0 {
		delete(r.projects, project)
	}
}

func (s *Streams) reconcileImports(ctx context.Context, client imageclient.ImageV1Interface, limit flowcontrol.RateLimiter, found *imagev1.ImageStream) error {
	wait, due := s.due(found, time.Now())
	if due && !limit.TryAccept() {
		wait, due = putOff, false
	}
	for _, spec := range wanted(found, due) {
		_, err := client.ImageStreamImports(found.Namespace).Create(ctx, &imagev1.ImageStreamImport{
			ObjectMeta: metav1.ObjectMeta{Namespace: found.Namespace, Name: found.Name, UID: found.UID, Generation: found.Generation},
			Spec:       spec,
		}, metav1.CreateOptions{})
		if apierrors.IsConflict(err) {
			return controller.After(lookAgain)
		}
		if err != nil && !apierrors.IsNotFound(err) { // its project is gone
			return fmt.Errorf("import into image stream %q: %w", found.Namespace+"/"+found.Name, err)
		}
	}
	if wait > 0 {
		return controller.After(wait)
	}
	return nil
}

// wanted are the imports that a stream needs; due says whether its scheduled tags are imported again. A repository comes alone: it changes the tags, which
// are looked at again then.
func wanted(found *imagev1.ImageStream, due bool) (specs []imagev1.ImageStreamImportSpec) {
	if repository := found.Spec.DockerImageRepository; repository != "" && found.Annotations[checked] == "" {
		from := corev1.ObjectReference{Kind: "DockerImage", Name: repository}
		return []imagev1.ImageStreamImportSpec{{Import: true, Repository: &imagev1.RepositoryImportSpec{From: from}}}
	}
	var images []imagev1.ImageImportSpec
	for i := range found.Spec.Tags {
		tag := &found.Spec.Tags[i]
		if imports(tag) && (due && tag.ImportPolicy.Scheduled || pending(found, tag)) {
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

// tagsOf is for how many tags an import counts.
func tagsOf(image imagev1.ImageImportSpec) int {
	if image.ImportPolicy.ImportMode == imagev1.ImportModePreserveOriginal {
		return perIndex
	}
	return 1
}

// registryOf is the registry that an image is imported from.
func registryOf(image imagev1.ImageImportSpec) string {
	reference, _ := record.ParseReference(image.From.Name) // what cannot be read the import refuses
	return reference.Registry
}

// due says whether the scheduled tags of a stream are to be imported again, and else after how long; 0 if there are none.
func (s *Streams) due(found *imagev1.ImageStream, now time.Time) (wait time.Duration, due bool) {
	any := false
	for i := range found.Spec.Tags {
		any = any || imports(&found.Spec.Tags[i]) && found.Spec.Tags[i].ImportPolicy.Scheduled
	}
	if !any || s.Interval == 0 {
		return 0, false
	}
	last, err := time.Parse(time.RFC3339, found.Annotations[checked])
	if err != nil {
		return s.Interval, true
	}
	if rest := last.Add(s.Interval).Sub(now); rest > 0 {
		return min(rest, s.Interval), false
	}
	return s.Interval, true
}

// imports says whether a tag is pointed at an image that is to be imported.
func imports(tag *imagev1.TagReference) bool {
	return tag.From != nil && tag.From.Kind == "DockerImage" && !tag.Reference
}

// pending says whether a tag has not been imported, with or without success, since it last changed.
func pending(found *imagev1.ImageStream, tag *imagev1.TagReference) bool {
	if tag.Generation == nil {
		return true
	}
	for _, list := range found.Status.Tags {
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
