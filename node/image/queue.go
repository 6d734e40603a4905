package image

import (
	"context"
	"slices"
	"sync"
)

const (
	// maxPulls is the maximum number of concurrent pulls on a node, and maxNamespacePulls is the
	// maximum number for pods in one namespace. A namespace's first pull never waits, even if the
	// node already has maxPulls pulls, so no namespace can block another namespace's pulls.
	maxPulls, maxNamespacePulls = 12, 3
)

// queue distributes a node's pulls, or the unpacking of layers, among namespaces. If a namespace
// pulls the same image several times, the pulls run one after the other, because later pulls have
// little left to download.
type queue struct {
	// max is the maximum number of requests admitted on a node, and share is the maximum number for
	// one namespace. A namespace's first request never waits.
	max, share int

	mutex    sync.Mutex
	total    int
	running  map[string]int
	images   map[namespacedImage]bool
	requests []*pullRequest // waiting requests in order of arrival
}

// namespacedImage is an image that pods in a namespace need. Namespaces do not wait for each other.
type namespacedImage struct{ namespace, image string }

type pullRequest struct {
	namespacedImage
	admitted chan struct{}
}

func newQueue(max, share int) *queue {
	return &queue{max: max, share: share, running: map[string]int{}, images: map[namespacedImage]bool{}}
}

// wait waits until a pull can start. The caller must call release when the pull has finished. If
// image is empty, the request does not wait for other requests that have the same image.
func (q *queue) wait(ctx context.Context, namespace, image string) (release func(), err error) {
	request := q.add(namespace, image)
	release = func() { q.release(request) }
	select {
	case <-request.admitted:
		return release, nil
	case <-ctx.Done():
		release()
		return nil, ctx.Err()
	}
}

// add adds a request.
func (q *queue) add(namespace, image string) *pullRequest {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	request := &pullRequest{namespacedImage{namespace, image}, make(chan struct{})}
	q.requests = append(q.requests, request)
	q.admit()
	return request
}

// release removes a request, regardless of whether it is waiting or its pull has finished.
func (q *queue) release(request *pullRequest) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if i := slices.Index(q.requests, request); i >= 0 {
		q.requests = slices.Delete(q.requests, i, i+1)
		return
	}
	q.total--
	delete(q.images, request.namespacedImage)
	if q.running[request.namespace]--; q.running[request.namespace] == 0 {
		delete(q.running, request.namespace)
	}
	q.admit()
}

// admit admits waiting requests as far as the limits allow.
func (q *queue) admit() {
	q.requests = slices.DeleteFunc(q.requests, func(request *pullRequest) bool {
		running := q.running[request.namespace]
		isFull := running >= q.share || q.total >= q.max
		if request.image != "" && q.images[request.namespacedImage] || isFull && running > 0 {
			return false
		}
		q.total++
		q.running[request.namespace]++
		q.images[request.namespacedImage] = true
		close(request.admitted)
		return true
	})
}
