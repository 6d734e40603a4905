package adm

import (
	"bytes"
	"io"
)

// oldUsage prints the headings of `oc adm top nodes` as OpenShift 3 does: CPU% in place of CPU(%).
type oldUsage struct{ io.Writer }

// Write writes text. Headings keep their width, so that columns stay aligned.
func (u oldUsage) Write(text []byte) (int, error) {
	old := bytes.ReplaceAll(text, []byte("(%)"), []byte("%  "))
	if _, err := u.Writer.Write(old); err != nil {
		return 0, err
	}
	return len(text), nil
}
