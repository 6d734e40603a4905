// This empty file lets the compiler accept the declaration of labels, which has no body.
