// Package podbandwidth reads the annotations that limit a pod's bandwidth.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, Limiting the Bandwidth
// Available to Pods.
package podbandwidth

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Annotations whose values are quantities in bits per second, such as "10M".
const (
	Ingress = "kubernetes.io/ingress-bandwidth" // to the pod
	Egress  = "kubernetes.io/egress-bandwidth"  // from the pod
)

// Parse returns the limits in a pod's annotations, in bits per second. 0 means no limit.
func Parse(annotations map[string]string) (ingress, egress uint64, err error) {
	ingress, ingressErr := parse(annotations, Ingress)
	egress, egressErr := parse(annotations, Egress)
	return ingress, egress, errors.Join(ingressErr, egressErr)
}

func parse(annotations map[string]string, name string) (uint64, error) {
	text, ok := annotations[name]
	if !ok {
		return 0, nil
	}
	// Check the range that the container runtime accepts, because the runtime does not start a pod
	// with a value outside this range.
	lowest, highest := resource.MustParse("1k"), resource.MustParse("1P")
	quantity, err := resource.ParseQuantity(text)
	if err != nil || quantity.Cmp(lowest) < 0 || quantity.Cmp(highest) > 0 {
		return 0, fmt.Errorf(`annotation %s is %q, must be a quantity of bits per second from 1k to 1P, such as "10M"`, name, text)
	}
	return uint64(quantity.Value()), nil
}
