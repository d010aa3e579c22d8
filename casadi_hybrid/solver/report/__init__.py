"""One self-contained HTML page of a solve: a template, its values and figures as inline SVG."""
