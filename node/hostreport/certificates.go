package hostreport

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// former matches the file names of all certificates that a node has requested, including the
// current certificate. These files are skipped, because a symbolic link points to the current
// certificate.
var former = regexp.MustCompile(`-\d{4}(-\d{2}){5}\.pem$`)

// certificatesIn returns the certificates in directories, sorted by name. It ignores files with
// other content.
func certificatesIn(dirs []string) (all []Certificate, err error) {
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // a renewal is replacing the files
			}
			if err != nil || entry.IsDir() || !slices.Contains([]string{".crt", ".pem"}, filepath.Ext(path)) || former.MatchString(path) {
				return err
			}
			if end, ok := endOf(path); ok {
				name, err := filepath.Rel(filepath.Dir(dir), path)
				if err != nil {
					return err
				}
				all = append(all, Certificate{name, end})
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read certificates: %w", err)
		}
	}
	slices.SortFunc(all, func(a, b Certificate) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// endOf returns the expiration time of the first certificate in a file.
func endOf(path string) (end metav1.Time, ok bool) {
	content, err := os.ReadFile(path)
	if err != nil {
		return end, false
	}
	for {
		var block *pem.Block
		if block, content = pem.Decode(content); block == nil {
			return end, false
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return end, false
		}
		return metav1.NewTime(certificate.NotAfter), true
	}
}
