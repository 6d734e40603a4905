package router

import (
	"cmp"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// miss is the last watch error for a resource.
type miss struct {
	reason metav1.StatusReason
	at     time.Time
}

// missPeriod is how long a watch error is considered current. The informer retries at least twice
// in this period.
const missPeriod = time.Minute

// miss records that a resource could not be watched.
func (v *view) miss(resource string, err error) {
	if err == nil || errors.Is(err, io.EOF) || apierrors.IsResourceExpired(err) {
		return // client-go restarts the watch
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.missed[resource] = miss{apierrors.ReasonForError(err), time.Now()}
}

// isForbidden reports whether the router was not allowed to watch a resource.
func (v *view) isForbidden(resource string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.missed[resource].reason == metav1.StatusReasonForbidden
}

// problem returns the name of a resource that the router cannot watch, and the reason. If the
// router can watch all resources, problem returns "".
func (v *view) problem() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var texts []string
	for _, resource := range slices.Sorted(maps.Keys(v.missed)) {
		miss := v.missed[resource]
		if time.Since(miss.at) > missPeriod {
			continue
		}
		text := resource + " cannot be watched: " + cmp.Or(string(miss.reason), "the API does not respond")
		if resource == "namespaces" && miss.reason == metav1.StatusReasonForbidden {
			text += "; NAMESPACE_LABELS and PROJECT_LABELS need this permission: " +
				"grant it to the router's service account with oc adm policy add-cluster-role-to-user cluster-reader"
		}
		if (resource == "nodes" || resource == "clusternetworks") && miss.reason == metav1.StatusReasonForbidden {
			text += "; native integration needs this permission: " +
				"grant it to the router's service account with oc adm policy add-cluster-role-to-user system:sdn-reader"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}
