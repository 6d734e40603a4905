// Package source fetches what a build is made from: a Git repository, or an archive or file that is uploaded. Whoever wrote it may mean ill:
// nothing of it is written outside of the directory it is for, and it ends at a limit.
package source
