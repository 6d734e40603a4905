// Package source fetches the source of a build: a Git repository, or an uploaded archive or file.
// It treats the source as untrusted: it writes only to the given directory, and only as much as a
// Limit allows.
package source
