package image

import (
	"context"
	"slices"
	"sync"
)

const (
	// maxPulls is the maximum number of concurrent pulls on a node, and maxNamespacePulls that for the
	// pods of one namespace. The only pull of a namespace never waits, even if the node has maxPulls,
	// so no namespace can stop the pulls of another.
	maxPulls, maxNamespacePulls = 12, 3
)

// queue distributes the pulls of a node, or the unpacking of layers, among namespaces. Pulls of the
// same image by one namespace run one after the other, because the second one has little to
// download.
type queue struct {
	// max and share are the maximum numbers for a node and for a namespace. The first request of a
	// namespace never waits.
	max, share int

	mutex    sync.Mutex
	total    int
	running  map[string]int
	images   map[namespacedImage]bool
	requests []*pullRequest // waiting requests, in the order of their arrival
}

// namespacedImage is an image that pods of a namespace need. Namespaces do not wait for each other.
type namespacedImage struct{ namespace, image string }

type pullRequest struct {
	namespacedImage
	admitted chan struct{}
}

func newQueue(max, share int) *queue {
	return &queue{max: max, share: share, running: map[string]int{}, images: map[namespacedImage]bool{}}
}

// wait waits until a pull can start. The caller calls release when the pull has ended. If image is
// empty, the request does not wait for another one with the same image.
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

// release removes a request, whether it waits or its pull has ended.
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

// admit admits the waiting requests that the limits allow.
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
