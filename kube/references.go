package kube

import "k8s.io/kubernetes/third_party/forked/golang/expansion"

// ExpandReferences replaces each reference in a text, such as $(NAME), as the kubelet does for the
// variables, commands and arguments of a container. value returns the text for a name.
func ExpandReferences(text string, value func(name string) string) string {
	return expansion.Expand(text, value)
}
