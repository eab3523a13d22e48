-- The standard normal distribution function, which DuckDB has not: within 1e-12, relative, of the true value where
-- |x| is at most 8. Abramowitz and Stegun, 26.2.11 (the series near zero) and 26.2.14 (the continued fraction beyond).
CREATE OR REPLACE MACRO normal_density(x) AS exp(-0.5 * x * x) / sqrt(2 * pi());

CREATE OR REPLACE MACRO normal_tail(x) AS
  normal_density(x) / list_reduce(list_prepend(x + 0.0, range(200, 0, -1)::DOUBLE[]), lambda fraction, k: x + k / fraction);

CREATE OR REPLACE MACRO normal_middle(x) AS
  normal_density(x) * list_sum(list_transform(range(0, 60), lambda k:
    x * list_reduce(list_prepend(1.0::DOUBLE, range(1, k + 1)::DOUBLE[]), lambda term, j: term * x * x / (2 * j + 1))));

CREATE OR REPLACE MACRO normal_cdf(x) AS
  CASE
    WHEN x < -3 THEN normal_tail(-x)
    WHEN x > 3 THEN 1 - normal_tail(x)
    ELSE 0.5 + normal_middle(x)
  END;
