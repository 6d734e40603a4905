package kube

import "k8s.io/kubernetes/third_party/forked/golang/expansion"

// ExpandReferences replaces each reference, such as $(NAME), in text, as the kubelet does in a
// container's environment variables, command and arguments. value returns the replacement for a
// name.
func ExpandReferences(text string, value func(name string) string) string {
	return expansion.Expand(text, value)
}
