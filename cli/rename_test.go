package cli

import "testing"

func TestRenameText(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"the program", "kubectl get pods | kubectl apply -f -", "oc get pods | oc apply -f -"},
		{"in quotes and at the end", "use 'kubectl', \"kubectl get\" or kubectl.", "use 'oc', \"oc get\" or oc."},
		{"before a colon", "kubectl: options", "oc: options"},
		{"an annotation", "the kubectl.kubernetes.io/default-container annotation", "the kubectl.kubernetes.io/default-container annotation"},
		{"an address", "https://kubernetes.io/docs/reference/kubectl/", "https://kubernetes.io/docs/reference/kubectl/"},
		{"a field manager", "kubectl-client-side-apply", "kubectl-client-side-apply"},
		{"a plugin", "begins with kubectl-", "begins with kubectl-"},
		{"shell functions", "complete -F __start_kubectl k", "complete -F __start_oc k"},
		{"completion files", "/etc/bash_completion.d/kubectl and ${fpath[1]}/_kubectl", "/etc/bash_completion.d/oc and ${fpath[1]}/_oc"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := renameText(tt.text, "oc"); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
