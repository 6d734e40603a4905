package image

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	imagev1 "github.com/openshift/api/image/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	genericserver "k8s.io/apiserver/pkg/server"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/apigroup/image/record"
	"github.com/slipway-platform/slipway/apiserver"
)

const (
	// recordLimitAnnotation is the namespace annotation that limits the number of the namespace's
	// image records. Its value is a number or unlimitedRecords. Only cluster administrators can set
	// it.
	recordLimitAnnotation = "slipway.openshift.io/image-records"
	unlimitedRecords      = "none"
	// maxRecords is the maximum number of image records for a project whose namespace has no valid
	// annotation.
	maxRecords = 2000
)

// recordCounter counts the image records that each project has created. A record that several
// projects use counts toward the limit of the project that created it, until it is pruned. The
// counter watches the store, and keeps only the names of the records.
type recordCounter struct {
	namespaces corelisters.NamespaceLister
	synced     chan struct{}

	mu       sync.Mutex
	isSynced bool
	projects map[string]string // projects by image name; "" if a record has no project
	counts   map[string]int    // number of records by project
}

var _ cache.ReflectorStore = &recordCounter{}

func newRecordCounter() *recordCounter {
	return &recordCounter{synced: make(chan struct{}), projects: map[string]string{}, counts: map[string]int{}}
}

// start returns a hook that starts the counter.
func (c *recordCounter) start(deps apiserver.Deps) genericserver.PostStartHookFunc {
	return func(ctx genericserver.PostStartHookContext) error {
		go c.run(ctx, deps.Stores[imagev1.Resource("images")])
		return nil
	}
}

// run watches the image store until ctx is done.
func (c *recordCounter) run(ctx context.Context, store *registry.Store) {
	source := apiserver.StoreListerWatcher{Find: func() (*registry.Store, error) { return store, nil }}
	cache.NewReflectorWithOptions(source, &imagev1.Image{}, c, cache.ReflectorOptions{Name: "image-records"}).RunWithContext(ctx)
}

// reserve counts a new record, unless the record exists. It returns an error if the project has
// reached its limit. The caller must call release if it does not create the record.
func (c *recordCounter) reserve(ctx context.Context, project, image string) (release func(), err error) {
	select {
	case <-c.synced:
	case <-ctx.Done():
		return nil, apierrors.NewServerTimeout(imagev1.Resource("images"), "create", 1)
	}
	limit := c.limit(project)
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, exists := c.projects[image]; exists {
		return func() {}, nil
	}
	if limit >= 0 && c.counts[project] >= limit {
		return nil, apierrors.NewForbidden(imagev1.Resource("images"), image, fmt.Errorf(
			"project %q has records of %d images, but its limit is %d; ask an administrator of the cluster to prune images or to raise the limit (annotation %s of the namespace)",
			project, c.counts[project], limit, recordLimitAnnotation))
	}
	c.set(image, project)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.projects[image] == project {
			c.unset(image)
		}
	}, nil
}

// limit returns a project's maximum number of records, or -1 if there is no limit.
func (c *recordCounter) limit(project string) int {
	namespace, err := c.namespaces.Get(project)
	if err != nil {
		return maxRecords
	}
	value := namespace.Annotations[recordLimitAnnotation]
	if value == unlimitedRecords {
		return -1
	}
	limit, err := strconv.Atoi(value)
	if err != nil || limit < 0 {
		return maxRecords
	}
	return limit
}

func (c *recordCounter) set(image, project string) {
	c.unset(image)
	c.projects[image] = project
	c.counts[project]++
}

func (c *recordCounter) unset(image string) {
	project, exists := c.projects[image]
	if !exists {
		return
	}
	delete(c.projects, image)
	if c.counts[project]--; c.counts[project] == 0 {
		delete(c.counts, project)
	}
}

// Add implements cache.ReflectorStore.
func (c *recordCounter) Add(object any) error {
	image := object.(*imagev1.Image)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(image.Name, image.Labels[record.ProjectLabel])
	return nil
}

// Update implements cache.ReflectorStore.
func (c *recordCounter) Update(object any) error { return c.Add(object) }

// Delete implements cache.ReflectorStore.
func (c *recordCounter) Delete(object any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unset(object.(*imagev1.Image).Name)
	return nil
}

// Replace implements cache.ReflectorStore.
func (c *recordCounter) Replace(objects []any, _ string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.projects)
	clear(c.counts)
	for _, object := range objects {
		image := object.(*imagev1.Image)
		c.set(image.Name, image.Labels[record.ProjectLabel])
	}
	if !c.isSynced {
		c.isSynced = true
		close(c.synced)
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (*recordCounter) Resync() error { return nil }

// create stores an image's record for a project. It returns an error if the project has reached its
// limit.
func (v view) create(ctx context.Context, project string, image *imagev1.Image, dryRun []string) error {
	release, err := v.records.reserve(ctx, project, image.Name)
	if err != nil {
		return err
	}
	created := image.DeepCopy()
	metav1.SetMetaDataLabel(&created.ObjectMeta, record.ProjectLabel, project)
	_, err = v.images.Create(ctx, created, rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: dryRun})
	if err != nil || len(dryRun) > 0 {
		release()
	}
	return err
}
