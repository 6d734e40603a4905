// Package labelselector measures the size of label selectors.
package labelselector

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Size returns the number of labels, requirements and values in a selector, which can be nil.
func Size(selector *metav1.LabelSelector) int {
	if selector == nil {
		return 0
	}
	size := len(selector.MatchLabels)
	for i := range selector.MatchExpressions {
		size += 1 + len(selector.MatchExpressions[i].Values)
	}
	return size
}
